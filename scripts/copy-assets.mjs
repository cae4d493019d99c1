// Copies what tsc leaves behind: the report page's style and script.
import { cpSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
cpSync(`${root}src/report/assets`, `${root}dist/report/assets`, { recursive: true });
