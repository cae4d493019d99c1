/** Folders for what runs leave. */
import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { fileReason, WeirError } from "./error.js";

/**
 * Makes a folder, and those it is in. One that is there is left as it is.
 *
 * Not by Node.js's `recursive`: that never returns where the system says ENOENT for a folder that is there, as it does in a working
 * directory that was removed, and in /proc.
 * @throws WeirError that names the folder
 */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const parent = dirname(path);
    if (code === "EEXIST" && statSync(path).isDirectory()) return;
    if (code === "ENOENT" && parent !== path && !existsSync(parent)) {
      makeFolder(parent);
      makeFolder(path);
      return;
    }
    const reason = code === "ENOENT" ? "the folder it would be in takes none, or was removed" : fileReason(error);
    throw new WeirError(`cannot make the folder ${path}: ${reason ?? message}`, {
      hint: "name another one with --out",
      cause: error,
    });
  }
}
