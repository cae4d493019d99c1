/** Finds programs that do not take preloaded libraries. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { deafness, programFile } from "../../../src/daemon/programs/executable.js";

function file(bytes: Uint8Array | string, mode = 0o755): string {
  const folder = mkdtempSync(join(tmpdir(), "weir-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "program");
  writeFileSync(path, bytes);
  chmodSync(path, mode);
  return path;
}

/** 64 bits, little endian; one program header. */
function elf(interpreter: string | undefined): Buffer {
  const head = Buffer.alloc(256);
  head.set([0x7f, 0x45, 0x4c, 0x46, 2, 1]);
  head.writeBigUInt64LE(64n, 32);
  head.writeUInt16LE(56, 54);
  head.writeUInt16LE(1, 56);
  head.writeUInt32LE(interpreter === undefined ? 1 : 3, 64);
  head.writeBigUInt64LE(128n, 72);
  head.writeBigUInt64LE(BigInt(interpreter?.length ?? 0), 96);
  head.write(interpreter ?? "", 128);
  return head;
}

it("are linked statically, of musl, or setuid", () => {
  expect(deafness(file(elf("/lib64/ld-linux-x86-64.so.2")))).toBeUndefined();
  expect(deafness(file(elf("/lib/ld-musl-x86_64.so.1")))).toContain("musl");
  expect(deafness(file(elf(undefined)))).toContain("statically");
  expect(deafness(file(elf("/lib64/ld-linux-x86-64.so.2"), 0o4755))).toContain("setuid");
  expect(deafness(process.execPath)).toBeUndefined();
});

it("are programs of this machine: of others, and of scripts, nothing is said", () => {
  expect(deafness(file("#!/bin/sh\n"))).toBeUndefined();
  expect(deafness(file(elf(undefined).subarray(0, 20)))).toBeUndefined();
  expect(deafness("/nothing/here")).toBeUndefined();
});

it("are found as a shell finds them", () => {
  const path = file("#!/bin/sh\n");
  const folder = path.slice(0, path.lastIndexOf("/"));
  expect(programFile("program", `/nothing:${folder}`)).toBe(path);
  expect(programFile("program", "/nothing")).toBeUndefined();
  expect(programFile("./program", "")).toBe("./program");
});
