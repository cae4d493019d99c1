// What tsc leaves undone: the permission to run the command.
import { chmodSync, utimesSync } from "node:fs";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
chmodSync(main, 0o755);
// tsc leaves alone what has not changed.
const now = new Date();
utimesSync(main, now, now);
