/** Refusals of the system, and files that are no result, are told in words that a user can act on. */
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { describeError, warn } from "../../src/cli/context.js";
import { itUnless, nativeObstacle } from "../obstacles.js";
import { sampleResult } from "../result/report/sample.js";
import { weir } from "./harness.js";
import { memoryStream } from "./memory_stream.js";

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
    stderr: `error: cannot write ${folder}/none/points.jsonl: there is no such folder\n`,
  });
  expect(await into(folder)).toMatchObject({ status: 1, stderr: `error: cannot write ${folder}: is a directory\n` });
});

itUnless(nativeObstacle(), "a full disk", async () => {
  expect(await weir(["sweep", "plan", kSweep, "--out", "/dev/full"])).toMatchObject({
    status: 1,
    stderr: "error: cannot write /dev/full: no space left on the device\n",
  });
});

const kHostile = "x\u001b]0;pwn\u0007\u001b[31m\u009b2J\u202etxt\u2028y\u007f\r";

it("says nothing to the terminal that a file has made up", async () => {
  const file = join(temporary(), "bad.yaml");
  writeFileSync(file, `name: x\n${JSON.stringify(kHostile)}: 3\n`);
  const { status, stderr } = await weir(["validate", file]);
  expect(status).toBe(2);
  expect(stderr).toContain("x?]0;pwn??[31m?2J?txt?y??: unknown field");
  const error = Object.assign(new Error(`${kHostile}\n  é 漢字 👍\t1`), { hint: kHostile });
  expect(describeError(error)).toBe(
    "error: x?]0;pwn??[31m?2J?txt?y??\n  é 漢字 👍\t1\n  hint: x?]0;pwn??[31m?2J?txt?y??\n",
  );
});

it("nor what it is warned of", () => {
  const { stream, text } = memoryStream();
  warn({ stderr: stream }, kHostile);
  expect(text()).toBe("warning: x?]0;pwn??[31m?2J?txt?y??\n");
});

it.each([
  ["validate", "none.yaml"],
  ["sim", "run", "none.yaml"],
  ["sweep", "plan", "none.yaml"],
  ["sweep", "merge", "none"],
  ["switch", "-c", "none.yaml"],
  ["nic", "-c", "none.yaml"],
  ["switch", "--sonic", "none.json"],
  ["report", "none"],
  ["compare", "none"],
  ["lab", "merge", "none"],
  ["plan", "check", "none.yaml"],
])("a file that is not there is bad usage: weir %s %s %s", async (...argv) => {
  const { status, stderr } = await weir(argv.filter((word) => word !== undefined));
  expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(/no such (file|folder)/) });
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

it("what beside it is no scenario of a run", async () => {
  const folder = temporary();
  const file = join(folder, "result.json");
  const beside = join(folder, "scenario.json");
  writeFileSync(file, JSON.stringify(sampleResult(2)));
  const report = async (source: unknown) => {
    writeFileSync(beside, JSON.stringify(source));
    return await weir(["report", file]);
  };
  const scenario = { switches: [], congestion: { parameters: { g: 1 } } };
  expect(await report({ text: "", set: [], scenario })).toMatchObject({ status: 0 });
  for (const [source, field] of [
    [{ text: 5, set: [], scenario }, "text"],
    [{ text: "", set: "x", scenario }, "set"],
    [{ text: "", set: [], scenario: null }, "scenario"],
    [{ text: "", set: [], scenario: {} }, "scenario.switches"],
    [{ text: "", set: [], scenario: { switches: [{ name: "s", ecn: { kmin: "<img>" } }] } }, "scenario.switches.0.ecn"],
    [{ text: "", set: [], scenario: { switches: [], congestion: { parameters: { g: {} } } } }, "scenario.congestion"],
  ] as const) {
    const { status, stderr } = await report(source);
    expect([status, stderr]).toEqual([
      2,
      expect.stringContaining(`error: ${beside}: not the scenario of a run of weir: ${field}`),
    ]);
    // `weir compare` reads it in the same way.
    expect((await weir(["compare", file, file])).stderr).toBe(stderr);
  }
});

it("a result that is larger than any", async () => {
  const file = join(temporary(), "result.json");
  writeFileSync(file, "{}");
  truncateSync(file, 600e6);
  const { status, stderr } = await weir(["report", file]);
  expect([status, stderr]).toEqual([2, expect.stringContaining(`error: ${file}: is too large; the limit is 5`)]);
});
