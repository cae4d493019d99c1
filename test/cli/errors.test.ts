/** What the system refuses, and what is no result, in words that a user can act on. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { describeError } from "../../src/cli/context.js";
import { itUnless, nativeObstacle } from "../obstacles.js";
import { weir } from "./harness.js";

const kSweep = "examples/sweep-ecn.yaml";

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), "weir-errors-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

itUnless(nativeObstacle(), "names the file that cannot be written, without the system call", async () => {
  const folder = temporary();
  const into = async (file: string) => await weir(["sweep", "plan", kSweep, "--out", file]);
  expect(await into(join(folder, "none/points.jsonl"))).toMatchObject({
    status: 1,
    stderr: `error: ${folder}/none/points.jsonl: no such file or folder\n`,
  });
  expect(await into(folder)).toMatchObject({ status: 1, stderr: `error: ${folder}: is a directory\n` });
});

itUnless(nativeObstacle(), "a full disk", async () => {
  expect(await weir(["sweep", "plan", kSweep, "--out", "/dev/full"])).toMatchObject({
    status: 1,
    stderr: "error: no space left on the device\n",
  });
});

it("leaves alone what is not about a file", () => {
  const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED", syscall: "connect" });
  expect(describeError(refused)).toBe("error: connect ECONNREFUSED\n");
  expect(describeError(Object.assign(new Error("own words"), { code: "ENOENT" }))).toBe("error: own words\n");
});

it("a folder for results that is a file", async () => {
  const file = join(temporary(), "results");
  writeFileSync(file, "");
  const { status, stderr } = await weir(["lab", "run", "examples/incast-4to1.yaml", "--quiet", "--out", file]);
  expect(status).toBe(1);
  expect(stderr).toBe(`error: cannot make the folder ${file}: there is a file of this name\n`);
});

it("what should be the result of a run", async () => {
  const folder = temporary();
  const file = join(folder, "result.json");
  const hint = "  hint: give the result.json of a run\n";
  expect((await weir(["report", file])).stderr).toBe(`error: ${file}: no such file\n${hint}`);
  expect((await weir(["report", folder])).stderr).toBe(`error: ${folder}: is a directory\n${hint}`);
  writeFileSync(file, "name: x\nduration: 5ms\n");
  expect((await weir(["report", file])).stderr).toBe(`error: ${file}: is not JSON\n${hint}`);
});
