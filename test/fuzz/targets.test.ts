/** The targets themselves: a few inputs of each, of those that `npm run fuzz` has without end. */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { kFuzzTargets } from "../../scripts/fuzz/targets.js";
import { fuzzShortly, temporaryFolder } from "./short.js";
import { kTargets } from "./targets.js";

const kInputs = 60;

it.each(Object.keys(kTargets))("%s: nothing is found in inputs of one seed, and they show something", async (name) => {
  const outcome = await fuzzShortly(name, kInputs);
  if (outcome.failure !== undefined) throw outcome.failure.error;
  expect(outcome.runs).toBe(kInputs);
  expect(outcome.added).toBeGreaterThan(3);
});

it("the command lists those there are, of either language", () => {
  const native = readFileSync("native/fuzz/sources.txt", "utf8").matchAll(/(\w+)_fuzz\.cc/g);
  const names = (isNative: boolean) => kFuzzTargets.filter((one) => one.isNative === isNative).map(({ name }) => name);
  expect(names(true).sort()).toEqual([...native].map(([, name]) => name).sort());
  expect(names(false).sort()).toEqual(Object.keys(kTargets).sort());
  const { status, stdout } = command("--list");
  expect({
    status,
    names: stdout
      .trim()
      .split("\n")
      .map((line) => line.split(" ")[0]),
  }).toEqual({
    status: 0,
    names: kFuzzTargets.map(({ name }) => name),
  });
});

it("the command says what it was asked for wrongly", () => {
  expect(command("nothing")).toMatchObject({
    status: 2,
    stderr: "npm run fuzz: there is no target nothing; --list lists them\n",
  });
  expect(command("--seconds", "0")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("A whole number from 1 on"),
  });
  expect(command("cm", "--input", "/no/such")).toMatchObject({
    status: 2,
    stderr: "npm run fuzz: --input /no/such: no such file\n",
  });
  expect(command("--help")).toMatchObject({ status: 0, stdout: expect.stringContaining("--seconds <n>") });
});

it("the command runs one input again", () => {
  const file = join(temporaryFolder(), "input");
  writeFileSync(file, "anything");
  expect(command("cm", "--input", file)).toMatchObject({ status: 0, stderr: "nothing was found\n" });
});

it("CI has each target for some time at every change, and longer with --all, by the same command", () => {
  const steps = readFileSync(".ci/run", "utf8").matchAll(/^ *step \d+m npm run fuzz -- --jobs 2 --seconds (\d+)$/gm);
  expect([...steps].map(([, seconds]) => Number(seconds))).toEqual([25, 300]);
});

function command(...options: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--import", "tsx", "scripts/fuzz.ts", ...options], {
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}
