/** Finds programs that do not take the variables by which `weir run` gives them a NIC. */
import { accessSync, closeSync, constants, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";

const kElf = Buffer.from("7f454c46", "hex");
const kClass64 = 2;
const kLittleEndian = 1;
const kInterpreterSegment = 3;
const kSetId = 0o6000;
/** Bytes that are read: all linkers put program headers at the front of files. */
const kLookedAt = 4096;

/** Finds a program as a shell does; undefined: there is none. */
export function programFile(program: string, path = process.env.PATH ?? ""): string | undefined {
  if (program.includes("/")) return program;
  return path
    .split(":")
    .map((folder) => join(folder || ".", program))
    .find((file) => isProgram(file));
}

/** Says why a program does not take preloaded libraries; undefined: it may well, or is no program of its own, such as a script. */
export function deafness(file: string): string | undefined {
  try {
    if ((statSync(file).mode & kSetId) !== 0) return "is setuid or setgid, and the system keeps LD_PRELOAD from it";
    const head = headOf(file);
    if (!head.subarray(0, 4).equals(kElf) || head[4] !== kClass64 || head[5] !== kLittleEndian) return;
    const interpreter = interpreterOf(head);
    if (interpreter === undefined) return "is linked statically, and loads no library";
    if (interpreter.includes("ld-musl")) return "is of musl, and Weir's libraries are of glibc";
    return;
  } catch {
    // An attempt to run it will say what is wrong.
    return;
  }
}

/** Interpreter that ELF's segments name; undefined: there is none. */
function interpreterOf(head: Buffer): string | undefined {
  const [begin, size, count] = [Number(head.readBigUInt64LE(32)), head.readUInt16LE(54), head.readUInt16LE(56)];
  for (let at = begin; at < begin + size * count && at + 40 <= head.length; at += size) {
    if (head.readUInt32LE(at) !== kInterpreterSegment) continue;
    const from = Number(head.readBigUInt64LE(at + 8));
    return head.toString("latin1", from, from + Number(head.readBigUInt64LE(at + 32)));
  }
  return undefined;
}

function headOf(file: string): Buffer {
  const descriptor = openSync(file, "r");
  try {
    const head = Buffer.alloc(kLookedAt);
    return head.subarray(0, readSync(descriptor, head));
  } finally {
    closeSync(descriptor);
  }
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
