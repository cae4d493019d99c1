/** Files of results are whole, or not there. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { writeWhole } from "../../src/base/write_file.js";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "weir-write-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

it("writes text, bytes and pieces, and leaves nothing beside them", () => {
  const path = folder();
  writeWhole(join(path, "a"), "text");
  writeWhole(join(path, "b"), new Uint8Array([1, 2]));
  writeWhole(join(path, "c"), ["one", "two"]);
  expect(readdirSync(path).sort()).toEqual(["a", "b", "c"]);
  expect(["a", "b", "c"].map((name) => readFileSync(join(path, name), "latin1"))).toEqual([
    "text",
    "\u0001\u0002",
    "onetwo",
  ]);
});

it("keeps the file before, and nothing else, where the new one cannot be made", () => {
  const path = folder();
  const file = join(path, "series.json");
  writeWhole(file, "before");
  const failing = function* () {
    yield "half";
    // The system reports a full disk like this.
    throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC", syscall: "write" });
  };
  expect(() => writeWhole(file, failing())).toThrow(`cannot write ${file}: no space left on the device`);
  expect(readdirSync(path)).toEqual(["series.json"]);
  expect(readFileSync(file, "utf8")).toBe("before");
});

it("replaces a file with the rights that it has", () => {
  const file = join(folder(), "report.html");
  writeFileSync(file, "before");
  chmodSync(file, 0o640);
  writeWhole(file, "after");
  expect([readFileSync(file, "utf8"), statSync(file).mode & 0o777]).toEqual(["after", 0o640]);
});

it("writes through no link that lies where the unfinished file goes", () => {
  const path = folder();
  const victim = join(folder(), "victim");
  writeFileSync(victim, "before");
  symlinkSync(victim, join(path, `.a.${hostname()}.${process.pid}.tmp`));
  writeWhole(join(path, "a"), "after");
  expect([readFileSync(victim, "utf8"), readFileSync(join(path, "a"), "utf8")]).toEqual(["before", "after"]);
  expect(readdirSync(path)).toEqual(["a"]);
});

it("writes into what is no plain file, and leaves it what it is", () => {
  const path = folder();
  writeFileSync(join(path, "real"), "before");
  symlinkSync("real", join(path, "link"));
  writeWhole(join(path, "link"), "after");
  expect(lstatSync(join(path, "link")).isSymbolicLink()).toBe(true);
  expect(readFileSync(join(path, "real"), "utf8")).toBe("after");
  writeWhole("/dev/null", "gone");
  expect(statSync("/dev/null").isCharacterDevice()).toBe(true);
  expect(() => writeWhole("/dev/full", "x")).toThrow("cannot write /dev/full: no space left on the device");
  execFileSync("mkfifo", [join(path, "pipe")]);
  expect(lstatSync(join(path, "pipe")).isFIFO()).toBe(true);
});

it("says what is in the way", () => {
  const path = folder();
  mkdirSync(join(path, "sub"));
  expect(() => writeWhole(join(path, "none/a"), "")).toThrow(`cannot write ${path}/none/a: there is no such folder`);
  expect(() => writeWhole(join(path, "sub"), "")).toThrow(`cannot write ${path}/sub: is a directory`);
});
