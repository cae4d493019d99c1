/**
 * The program of src/ and papers/ as dist/, in few files: Node.js takes longer to find and read some hundred modules than to run many
 * a verb. npm packages that most verbs need are inside, with their licences in dist/licenses.md. Others are loaded as packages: those
 * that few verbs need, and raw-socket, which is compiled.
 */
import { readdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");

/** Modules that are run or imported by the paths of their files. Weir is one graph of them: no module is in two files. */
const kEntries = {
  "cli/main": "src/cli/main.ts",
  "verbs/index": "src/verbs/index.ts",
  "study/worker": "src/study/worker.ts",
  "papers/paper": "papers/cli/paper.ts",
  "papers/worker": "papers/cli/worker.ts",
};
/** Packages that are loaded as such. */
export const kPackages = ["@bomb.sh/tab", "@grpc/grpc-js", "@grpc/proto-loader", "raw-socket", "vega", "vega-lite"];

/** Removes modules of earlier builds: dist/ has what runs, and code versions are sums of what it has. */
const tidy: Plugin = {
  name: "tidy",
  writeBundle(_, bundle) {
    for (const file of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
      if (/\.js(\.map)?$/.test(file) && !file.startsWith("web/") && !(file in bundle)) rmSync(join(dist, file));
    }
  },
};

/**
 * Modules that are a file each with all that they import and no earlier one has: whoever loads them needs all of that. Otherwise each
 * set of verbs has a file for what these alone share, and Node.js takes a millisecond for each.
 */
const kTogether = [
  "src/cli/program.ts",
  "src/native/addon.ts",
  "src/cli/show.ts",
  "src/cli/lab_standing.ts",
  "src/cli/compare.ts",
  "src/cli/doctor.ts",
  "src/cli/perf.ts",
  "src/device/file/load.ts",
  "src/scenario/scenario.ts",
  "src/clocks/sim/run.ts",
  "src/cli/run_scenario.ts",
];

export default defineConfig({
  root,
  plugins: [tidy],
  ssr: { noExternal: true, external: kPackages },
  build: {
    ssr: true,
    outDir: dist,
    emptyOutDir: false,
    copyPublicDir: false,
    reportCompressedSize: false,
    target: "node20",
    license: { fileName: "licenses.md" },
    rolldownOptions: {
      input: Object.fromEntries(Object.entries(kEntries).map(([name, file]) => [name, join(root, file)])),
      output: {
        codeSplitting: {
          groups: kTogether.map((file, index) => ({
            name: basename(file, ".ts"),
            test: (id: string) => id === join(root, file),
            priority: kTogether.length - index,
          })),
        },
        entryFileNames: "[name].js",
        // Folders are as deep as those of src/: modules find other files of the package by their own places.
        chunkFileNames: ({ moduleIds }) =>
          `${moduleIds.some((id) => id.startsWith(join(root, "papers/"))) ? "papers" : "chunks"}/[name]-[hash].js`,
      },
    },
  },
  logLevel: "warn",
});
