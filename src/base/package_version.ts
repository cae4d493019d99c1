import { readFileSync } from "node:fs";
import { packageFile } from "./package_file.js";

/** Of the package that this is. */
export function packageVersion(): string {
  return (JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as { version: string }).version;
}
