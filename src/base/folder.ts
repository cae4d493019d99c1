/** Folders for what runs leave, and for sockets. */
import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { fileReason, WeirError } from "./error.js";

/**
 * Makes a folder, and those it is in; `mode` is subject to the umask. One that is there is left as it is.
 *
 * Node.js's `recursive` would not do: it never returns where the system says ENOENT for a folder that is there, as it does in a
 * working directory that was removed, and in /proc.
 * @throws WeirError that names the folder
 */
export function makeFolder(path: string, mode = 0o777): void {
  try {
    mkdirSync(path, mode);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const parent = dirname(path);
    if (code === "EEXIST" && statSync(path).isDirectory()) return;
    if (code === "ENOENT" && parent !== path && !existsSync(parent)) {
      makeFolder(parent, mode);
      makeFolder(path, mode);
      return;
    }
    const reason =
      code === "ENOENT" ? `no folder can be made in ${parent}: it was removed, or is the kernel's` : fileReason(error);
    throw new WeirError(`cannot make the folder ${path}: ${reason ?? message}`, { cause: error });
  }
}
