/** A sweep in a process of its own, which is killed. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { planText } from "../../src/study/plan.js";
import { endWithTest } from "../end_with_test.js";
import { kPatienceMs } from "../limits.js";
import { kTestMarker, markedProcesses } from "../live/processes.js";
import { eventually } from "../patience.js";
import { programFile } from "../programs/files.js";
import { folder, plan, writeSweep } from "./fixture.js";

const kCommand = [programFile("sweep"), "sweep"];
const resultsIn = (directory: string) => readdirSync(directory).filter((name) => /^[0-9a-f]{32}\.json$/.test(name));

/** Twelve points that take a while, on two workers, in a folder of their own. */
function sweep() {
  const directory = folder();
  const points = join(directory, "plan.jsonl");
  const out = join(directory, "results");
  const spec = { vary: { description: Array.from({ length: 12 }, (_, i) => `wait ${200 + i}`) } };
  writeFileSync(points, planText(plan(writeSweep(directory, spec))));
  const marker = randomUUID();
  const args = [...kCommand, "run", "--points", points, "--out", out];
  const start = (): ChildProcess => {
    const child = spawn(process.execPath, [...args, "--jobs", "2"], {
      stdio: "ignore",
      env: { ...process.env, [kTestMarker]: marker },
    });
    endWithTest(child);
    return child;
  };
  const finish = () =>
    spawnSync(process.execPath, [...args, "--jobs", "2"], { encoding: "utf8", timeout: kPatienceMs });
  const untilSomeAreDone = () => eventually(() => expect(resultsIn(out).length).toBeGreaterThan(2));
  const nobodyLeft = () => eventually(() => expect(markedProcesses(marker)).toEqual([]));
  return { out, start, finish, untilSomeAreDone, nobodyLeft };
}

it("killed by SIGKILL leaves no worker and nothing half-written, and is resumed", async () => {
  const { out, start, finish, untilSomeAreDone, nobodyLeft } = sweep();
  const child = start();
  await untilSomeAreDone();
  child.kill("SIGKILL");
  await nobodyLeft();
  const before = resultsIn(out);
  expect(before.length).toBeLessThan(12);
  expect(readdirSync(out).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  for (const name of before) expect(JSON.parse(readFileSync(join(out, name), "utf8"))).toHaveProperty("result.totals");

  const resumed = finish();
  expect(resumed).toMatchObject({ status: 0 });
  expect(resumed.stderr).toContain(`12 points: ${12 - before.length} done, ${before.length} done before; results in`);
  expect(resumed.stdout.trimEnd().split("\n")).toHaveLength(1 + 12 - before.length);
  expect(resultsIn(out)).toHaveLength(12);
});

it.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("stopped by %s ends its workers and exits with %i", async (signal, status) => {
  const { out, start, untilSomeAreDone, nobodyLeft } = sweep();
  const child = start();
  const ended = new Promise((resolve) => child.on("exit", resolve));
  await untilSomeAreDone();
  child.kill(signal);
  expect(await ended).toBe(status);
  await nobodyLeft();
  expect(resultsIn(out).length).toBeLessThan(12);
  expect(readdirSync(out).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});
