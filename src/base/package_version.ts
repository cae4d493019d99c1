import { readFileSync } from "node:fs";

/** Of the package that this is. */
export function packageVersion(): string {
  return (JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string })
    .version;
}
