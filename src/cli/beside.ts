import { extname } from "node:path";
import { fileURLToPath } from "node:url";

/** A module by its path from here, without ending, which is that of this one. */
export function beside(name: string): string {
  return fileURLToPath(new URL(`${name}${extname(import.meta.url)}`, import.meta.url));
}
