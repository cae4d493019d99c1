// Runs clang-format over all of native/, with the options given.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";

const files = readdirSync("native", { recursive: true }).filter((file) => /\.(cc|h)$/.test(file));
const { status } = spawnSync(
  "node_modules/.bin/clang-format",
  [...process.argv.slice(2), ...files.map((file) => `native/${file}`)],
  {
    stdio: "inherit",
  },
);
process.exitCode = status ?? 1;
