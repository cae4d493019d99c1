// What tsc leaves undone: the report page's style and script, and the permission to run the command.
import { chmodSync, cpSync, utimesSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
cpSync(`${root}src/report/assets`, `${root}dist/report/assets`, { recursive: true });
chmodSync(`${root}dist/cli/main.js`, 0o755);
// tsc leaves alone what has not changed.
const now = new Date();
utimesSync(`${root}dist/cli/main.js`, now, now);
