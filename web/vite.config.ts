/**
 * Two pages of web/: the dashboard's, which becomes dist/web/dashboard, one document and assets named by their content; and with
 * `--mode report` the charts of reports, which become dist/web/report: one script and one style that reports have inside.
 */
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig(({ mode }) => ({
  root: here("."),
  // The page may be served below any path.
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    license: { fileName: "licenses.txt" },
    ...(mode === "report"
      ? {
          outDir: here("../dist/web/report"),
          copyPublicDir: false,
          lib: {
            entry: here("src/report.tsx"),
            formats: ["iife"],
            name: "report",
            fileName: () => "report.js",
            cssFileName: "report",
          },
        }
      : {
          outDir: here("../dist/web/dashboard"),
          // The page's policy allows no data: addresses.
          assetsInlineLimit: 0,
        }),
  },
  logLevel: "warn",
}));
