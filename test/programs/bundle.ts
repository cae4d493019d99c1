/** Bundles the programs of the tests. It is apart from them, for they need no bundler. */
import { join } from "node:path";
import { build } from "vite";
import { kPackages } from "../../scripts/bundle.config.js";
import { kProgramFolder, kProgramSources } from "./files.js";

export async function buildPrograms(root: string): Promise<void> {
  await build({
    configFile: false,
    root,
    ssr: { noExternal: true, external: kPackages },
    build: {
      ssr: true,
      outDir: join(root, kProgramFolder),
      emptyOutDir: false,
      copyPublicDir: false,
      reportCompressedSize: false,
      target: "node20",
      rolldownOptions: {
        input: Object.fromEntries(Object.entries(kProgramSources).map(([name, file]) => [name, join(root, file)])),
        // Names stay the same, so that nothing of earlier builds is left.
        output: { entryFileNames: "[name].js", chunkFileNames: "[name].js" },
      },
    },
    logLevel: "warn",
  });
}
