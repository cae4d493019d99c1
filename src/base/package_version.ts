import { readFileSync } from "node:fs";
import { packageFile } from "./package_file.js";

/** Version of the package that this file belongs to. */
export function packageVersion(): string {
  return (JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as { version: string }).version;
}
