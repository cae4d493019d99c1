import { fileURLToPath } from "node:url";

/** A file or folder that comes with the package, by its path there, which is the same for src/ and for dist/. */
export function packageFile(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}
