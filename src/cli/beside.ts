import { extname } from "node:path";
import { fileURLToPath } from "node:url";

/** A module by its path from that of `url`, without ending, which is the same: a worker of what was built was built, too. */
export function beside(url: string, name: string): string {
  return fileURLToPath(new URL(`${name}${extname(url)}`, url));
}
