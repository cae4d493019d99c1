import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Plan, planText } from "../../src/study/plan.js";
import { type RunOptions, runPlan, type StudyOutcome } from "../../src/study/run.js";
import { ResultStore } from "../../src/study/store.js";
import { unmadeText } from "../result/unmade.js";
import { fakeSimulate } from "./fake_simulate.js";
import { clocksWith, startFakeWorker } from "./fake_tools.js";
import { folder, kScenario, plan, writeSweep } from "./fixture.js";

/** Runs all points of a plan; returns events by index. */
async function run(made: Plan, directory: string, options: Partial<RunOptions> = {}) {
  const outcomes = new Map<number, StudyOutcome>();
  const progress: number[] = [];
  const summary = await runPlan(made, made.points, {
    directory,
    jobs: undefined,
    runners: clocksWith(fakeSimulate),
    startWorker: startFakeWorker,
    signal: new AbortController().signal,
    onStart: () => {},
    onProgress: (_, fraction) => progress.push(fraction),
    onOutcome: ({ index }, outcome) => outcomes.set(index, outcome),
    ...options,
  });
  return { summary, outcomes, progress };
}

const results = (directory: string) =>
  new Map(
    readdirSync(directory)
      .filter((name) => /^[0-9a-f]{32}\.json$/.test(name))
      .sort()
      .map((name) => [name, unmadeText(readFileSync(join(directory, name), "utf8"))]),
  );
const indices = (points: { point: { index: number } }[]) => points.map(({ point }) => point.index);
const kSeeds = (count: number) => plan(writeSweep(folder(), { seeds: count }));

describe("a sweep's run", () => {
  it("leaves the same bytes in this process and on workers, and the plan beside them", async () => {
    const made = kSeeds(5);
    const [here, there] = [folder(), folder()];
    const alone = await run(made, here);
    const together = await run(made, there, { jobs: 2 });
    for (const { summary, outcomes, progress } of [alone, together]) {
      expect(summary).toEqual({ done: 5, skipped: 0, failed: [], crashed: [] });
      expect(outcomes.get(4)).toEqual({ status: "done", fields: [205_000] });
      expect(progress).toContain(0.5);
    }
    expect(results(here).size).toBe(5);
    expect(results(there)).toEqual(results(here));
    expect(readFileSync(join(there, "points.jsonl"), "utf8")).toBe(planText(made));
  });

  it("does only what is missing, and each result once", async () => {
    const directory = folder();
    const made = plan(writeSweep(folder(), { seeds: 3, vary: { "switch.ecn.kmax": ["200KB", 200_000] } }));
    // 200KB and 200000 are different texts: two points that nobody could tell apart, but for their ids.
    expect((await run(made, directory)).summary.done).toBe(6);
    const [first] = made.points;
    rmSync(join(directory, `${first?.id}.json`));
    expect((await run(made, directory)).summary).toMatchObject({ done: 1, skipped: 5 });
    const twice = plan(writeSweep(folder(), { seeds: [1], points: [{ duration: "1ms" }, { duration: "1ms" }] }));
    expect((await run(twice, folder())).summary).toMatchObject({ done: 1, skipped: 1 });
  });

  it("remembers a point that fails for good, and does not try it again", async () => {
    const directory = folder();
    const log = join(directory, "log");
    const made = plan(writeSweep(folder(), { vary: { description: ["refuse", `log ${log}`] } }));
    const first = await run(made, directory, { jobs: 1 });
    expect(first.summary).toMatchObject({ done: 1, failed: [{ point: { index: 0 }, error: "no such thing" }] });
    const again = await run(made, directory, { runners: clocksWith(() => Promise.reject(new Error("ran"))) });
    expect(again.summary).toMatchObject({ done: 0, skipped: 1, failed: [{ error: "no such thing" }] });
  });

  it("lets what is not the point's fault through, and writes nothing of it", async () => {
    const directory = folder();
    await expect(run(plan(writeSweep(folder(), { set: { description: "break" } })), directory)).rejects.toThrow(
      "broken",
    );
    expect(readdirSync(directory)).toEqual(["points.jsonl"]);
  });

  it("gives a point whose worker died two more tries, and goes on with the others", async () => {
    const mark = join(folder(), "mark");
    const descriptions = ["die", "", `die-once ${mark}`];
    const made = plan(writeSweep(folder(), { vary: { description: descriptions } }));
    const { summary, outcomes } = await run(made, folder(), { jobs: 2 });
    expect(summary).toMatchObject({ done: 2, failed: [] });
    expect(indices(summary.crashed)).toEqual([0]);
    expect(outcomes.get(0)).toEqual({
      status: "crashed",
      error: "its process was ended by SIGKILL: about to die",
    });
  });

  it("says why workers do not start", async () => {
    const broken: RunOptions["startWorker"] = () => {
      const child = startFakeWorker();
      child.kill("SIGKILL");
      return child;
    };
    await expect(run(kSeeds(3), folder(), { jobs: 2, startWorker: broken })).rejects.toThrow(
      "a worker does not start: its process was ended by SIGKILL",
    );
  });

  it.each([undefined, 2])("ends at once when it is told to (workers: %s), and leaves what is done", async (jobs) => {
    const directory = folder();
    const made = plan(writeSweep(folder(), { vary: { description: ["", "sleep", "sleep 2", "sleep 3"] } }));
    const abort = new AbortController();
    const workers: ReturnType<RunOptions["startWorker"]>[] = [];
    const { summary } = await run(made, directory, {
      jobs,
      signal: abort.signal,
      startWorker: () => {
        workers.push(startFakeWorker());
        return workers.at(-1) as (typeof workers)[number];
      },
      // The first point is done, and one that sleeps is under way.
      onProgress: ({ index }) => results(directory).size === 1 && index > 0 && abort.abort(),
      onOutcome: ({ index }) =>
        jobs !== undefined && index === 0 && results(directory).size === 1 && setImmediate(() => abort.abort()),
    });
    expect(summary).toMatchObject({ done: 1, failed: [], crashed: [] });
    expect(results(directory).size).toBe(1);
    expect(readdirSync(directory).filter((name) => name.endsWith(".tmp"))).toEqual([]);
    expect(workers.every((worker) => worker.exitCode !== null || worker.signalCode !== null)).toBe(true);
  });

  it("needs no file that the scenario referred to when it was planned", async () => {
    const scenario = `${kScenario.slice(0, kScenario.indexOf("traffic:"))}transport: { type: rc }
traffic:
  - { pattern: list, csv: flows.csv }
`;
    const source = folder();
    writeFileSync(join(source, "flows.csv"), "src,dst,size_bytes,start_s\nh1,r,1000,0\n");
    const made = plan(writeSweep(source, {}, scenario));
    rmSync(source, { recursive: true });
    const directory = folder();
    const seen: number[] = [];
    await run(made, directory, {
      runners: clocksWith((one, options) => {
        seen.push(one.flows.length);
        return fakeSimulate(one, options);
      }),
    });
    expect(seen).toEqual([1]);
    expect([...results(directory).values()].join()).not.toContain(source);
  });
});

describe("a sweep's bound of what is skipped", () => {
  it("goes to each run, and into its file", async () => {
    const directory = folder();
    const bounds: unknown[] = [];
    await run(plan(writeSweep(folder(), { seeds: 2, fast_forward: "2%" })), directory, {
      runners: clocksWith((one, options) => {
        bounds.push(options.fastForward);
        return fakeSimulate(one, options);
      }),
    });
    expect(bounds).toEqual([0.02, 0.02]);
    for (const text of results(directory).values()) expect(JSON.parse(text).point.fast_forward).toBe(0.02);
  });
});

describe("a folder of results", () => {
  it("is rid of what processes that are no more left unfinished, and of nothing else", () => {
    const directory = folder();
    const dead = spawnSync("true").pid;
    const unfinished = (host: string, pid: number) => `.x.json.${host}.${pid}.tmp`;
    const kept = [unfinished(hostname(), process.pid), unfinished(`${hostname()}x`, dead), "x.json", "a.tmp"];
    mkdirSync(join(directory, "files"));
    for (const name of [...kept, unfinished(hostname(), dead), `files/${unfinished(hostname(), dead)}`]) {
      writeFileSync(join(directory, name), "");
    }
    ResultStore.open(directory).removeUnfinished();
    expect(readdirSync(directory, { recursive: true }).sort()).toEqual(["files", ...kept].sort());
  });

  it("names a file in it that is no result, and the remedy", () => {
    const directory = folder();
    writeFileSync(join(directory, "x.json"), '{"id":"x","result":{}}');
    const store = ResultStore.open(directory);
    expect(() => store.result({ id: "x" })).toThrow(`${join(directory, "x.json")} is not a result of a study`);
    expect(() => ResultStore.open(join(directory, "nosuch"))).toThrow("nosuch: no such folder");
  });
});
