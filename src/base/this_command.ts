import { extname } from "node:path";
import { fileURLToPath } from "node:url";

/** This installation's command, as this process was run. */
export const THIS_COMMAND: readonly string[] = [
  process.execPath,
  ...process.execArgv,
  fileURLToPath(new URL(`../cli/main${extname(import.meta.url)}`, import.meta.url)),
];
