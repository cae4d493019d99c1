/** Writes files of results: they are whole, or not there, whoever is killed and however full the disk is. */
import { closeSync, fchmodSync, fsyncSync, lstatSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileReason, WeirError } from "./error.js";

/** ".NAME.HOST.PID.tmp": a file that is being written, and by which process. */
export const kUnfinished = /^\..*\.(\d+)\.tmp$/;

type Data = string | Uint8Array | Iterable<string>;

/**
 * Writes a file under another name, and renames it once it is on the disk. An existing path that is no plain file (a device, a
 * pipe, a link) is written into as it is.
 * @param data Several pieces are written one after the other.
 * @throws WeirError that names the file
 */
export function writeWhole(path: string, data: Data): void {
  try {
    const there = lstatSync(path, { throwIfNoEntry: false });
    if (there === undefined || there.isFile()) replace(path, data, there?.mode);
    else withFile(path, "w", (file) => write(file, data));
  } catch (error) {
    const { code, syscall, message } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    const reason = code === "ENOENT" ? "there is no such folder" : (fileReason(error) ?? message);
    throw new WeirError(`cannot write ${path}: ${reason}`, { cause: error });
  }
}

/** @param mode Mode of the file that is replaced. */
function replace(path: string, data: Data, mode: number | undefined): void {
  const unfinished = join(dirname(path), `.${basename(path)}.${hostname()}.${process.pid}.tmp`);
  // The name may be left from a process that was killed, or be somebody's link to elsewhere.
  rmSync(unfinished, { force: true });
  try {
    withFile(unfinished, "wx", (file) => {
      if (mode !== undefined) fchmodSync(file, mode & 0o777);
      write(file, data);
      fsyncSync(file);
    });
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
  try {
    withFile(dirname(path), "r", fsyncSync);
  } catch {
    // Some file systems cannot put a folder on the disk; the file is whole all the same.
  }
}

function write(file: number, data: Data): void {
  if (typeof data === "string" || data instanceof Uint8Array) writeFileSync(file, data);
  else for (const piece of data) writeFileSync(file, piece);
}

function withFile(path: string, flags: "r" | "w" | "wx", action: (descriptor: number) => void): void {
  const file = openSync(path, flags);
  try {
    action(file);
  } finally {
    closeSync(file);
  }
}
