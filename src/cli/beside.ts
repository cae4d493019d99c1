import { extname } from "node:path";
import { fileURLToPath } from "node:url";

/** The file of a module by its path, without ending, from the module at `url`, which has the same ending: both were built, or neither. */
export function beside(url: string, name: string): string {
  return fileURLToPath(new URL(`${name}${extname(url)}`, url));
}
