import { extname } from "node:path";
import { fileURLToPath } from "node:url";

/** This installation's command, run as this process is. */
export const THIS_COMMAND: readonly string[] = [
  process.execPath,
  ...process.execArgv,
  fileURLToPath(new URL(`../../cli/main${extname(import.meta.url)}`, import.meta.url)),
];
