/** Worker processes of `weir paper all`, with experiments that take no time. */
import { fork } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { programFile } from "../../../test/programs/files.js";
import { type AllOptions, runTasks, savedPaper } from "../all/run.js";
import { planTasks, type Task, type TaskOptions, type TaskPlan } from "../all/task.js";
import { CLOCKS } from "../experiment.js";
import { kAllFakes } from "./all_fakes.js";

const root = mkdtempSync(join(tmpdir(), "weir-paper-all-"));
afterAll(() => rmSync(root, { recursive: true }));

const kWeir = "0.0.0+test";
let folders = 0;

function plan(ids: readonly string[], own: Partial<TaskOptions> = {}): TaskPlan {
  const chosen = ids.map((id) => kAllFakes.find((one) => one.id === id) ?? kAllFakes[0]).flatMap((one) => one ?? []);
  return planTasks(chosen, {
    clocks: CLOCKS,
    named: false,
    references: new Map(),
    weir: kWeir,
    seconds: ({ network }) => network?.sim_seconds ?? 1,
    ...own,
  });
}

function setUp(own: Partial<AllOptions> = {}) {
  const directory = join(root, String(folders++));
  mkdirSync(directory);
  const logFile = join(directory, "log.txt");
  writeFileSync(logFile, "");
  const options: AllOptions = {
    setup: { directory },
    jobs: 2,
    startWorker: () =>
      fork(programFile("experiment_worker"), {
        stdio: ["ignore", "ignore", "pipe", "ipc"],
        env: { ...process.env, WEIR_FAKE_LOG: logFile },
      }),
    signal: new AbortController().signal,
    onBegin: () => {},
    onProgress: () => {},
    onEnd: () => {},
    ...own,
  };
  return { directory, options, log: () => readFileSync(logFile, "utf8").trim().split("\n") };
}

describe("runTasks", () => {
  it("runs what needs no wire side by side, the longest first, and then the wire alone", async () => {
    const { directory, options, log } = setUp();
    const { tasks, plan: runs } = plan(["fake-framed", "fake-short", "fake-framed-too", "fake-long"]);
    const outcomes = await runTasks(tasks, runs, options);
    expect([...outcomes.values()].map(({ status }) => status)).toEqual(["done", "done", "done", "done"]);
    const lines = log();
    expect(lines.slice(0, 6).sort()).toEqual(
      ["framed", "long", "short"].flatMap((name) => [`+ ${name} sim`, `- ${name} sim`]).sort(),
    );
    expect(lines.slice(6)).toEqual(["+ framed wire", "- framed wire", "+ framed-too wire", "- framed-too wire"]);
    for (const task of tasks) {
      expect(savedPaper(directory, task)).toMatchObject({ complete: true, made: { key: task.key, weir: kWeir } });
    }
    const alone = setUp({ jobs: 1 });
    const few = plan(["fake-short", "fake-long"]);
    await runTasks(few.tasks, few.plan, alone.options);
    expect(alone.log()).toEqual(["+ long sim", "- long sim", "+ short sim", "- short sim"]);
  });

  it("goes on after one that fails, and after one that ends its process", async () => {
    const { directory, options } = setUp({ jobs: 1 });
    const { tasks, plan: runs } = plan(["fake-crash", "fake-bug", "fake-late", "fake-short"]);
    const outcomes = await runTasks(tasks, runs, options);
    expect(outcomes.get("fake-crash")).toEqual({ status: "crashed", error: "its process ended with status 7" });
    expect(outcomes.get("fake-bug")).toEqual({ status: "failed", error: "a bug" });
    expect(outcomes.get("fake-short")).toEqual({ status: "done" });
    expect(tasks.map((task) => savedPaper(directory, task)?.complete)).toEqual([undefined, undefined, false, true]);
  });

  it.each([
    ["fake-endless", "fake-short"],
    ["fake-framed-too", "fake-framed"],
  ])("when it is stopped, leaves nothing of %s and does not begin %s", async (...ids) => {
    const stop = new AbortController();
    const { directory, options, log } = setUp({ jobs: 1, signal: stop.signal, onProgress: () => stop.abort() });
    const { tasks, plan: runs } = plan(ids, { clocks: [ids[0] === "fake-endless" ? "sim" : "wire"] });
    const outcomes = await runTasks(tasks, runs, options);
    expect([...outcomes]).toEqual([[ids[0], { status: "stopped" }]]);
    expect(readdirSync(directory)).toEqual(["log.txt"]);
    expect(log().length).toBeLessThanOrEqual(1);
  });

  it("clears what an earlier call left unfinished, and nothing else", async () => {
    const { directory, options } = setUp();
    const folder = join(directory, "fake-short");
    mkdirSync(join(folder, "wire", "old"), { recursive: true });
    writeFileSync(join(folder, "paper.json"), '{"made": {"key"');
    writeFileSync(join(folder, "notes.txt"), "mine");
    const { tasks, plan: runs } = plan(["fake-short"]);
    const [task] = tasks;
    expect(savedPaper(directory, task as Task)).toBeUndefined();
    await runTasks(tasks, runs, options);
    expect(readFileSync(join(folder, "notes.txt"), "utf8")).toBe("mine");
    expect(existsSync(join(folder, "wire"))).toBe(false);
    expect(savedPaper(directory, task as Task)?.complete).toBe(true);
  });

  it("says why workers do not start", async () => {
    const startWorker = () => fork("/nonexistent.mjs", { stdio: ["ignore", "ignore", "pipe", "ipc"], execArgv: [] });
    const { options } = setUp({ startWorker });
    for (const id of ["fake-short", "fake-framed-too"]) {
      const { tasks, plan: runs } = plan([id]);
      await expect(runTasks(tasks, runs, options)).rejects.toThrow("a worker does not start");
    }
  });
});

describe("runs that are there", () => {
  it("are judged again without being made again, and those of another code or seed are", async () => {
    const { directory, options, log } = setUp();
    const { tasks, plan: runs } = plan(["fake-short", "fake-late"]);
    await runTasks(tasks, runs, options);
    const made = log().length;
    rmSync(join(directory, "fake-short", "paper.json"));
    const ids: string[] = [];
    await runTasks(tasks, runs, { ...options, onEnd: ({ experiment }) => ids.push(experiment.id) });
    expect(ids.sort()).toEqual(["fake-late", "fake-short"]);
    expect(tasks.map((task) => savedPaper(directory, task)?.complete)).toEqual([true, false]);
    expect(log()).toHaveLength(made);
    const other = plan(["fake-short"], { seed: 2 });
    await runTasks(other.tasks, other.plan, { ...options, setup: { directory, seed: 2 } });
    expect(log().slice(made)).toEqual(["+ short sim", "- short sim"]);
  });

  it("stay when all is stopped", async () => {
    const stop = new AbortController();
    const { directory, options, log } = setUp({ jobs: 1 });
    const [short] = plan(["fake-short"]).tasks;
    const { tasks, plan: runs } = plan(["fake-short", "fake-endless"]);
    const onEnd = () => stop.abort();
    const outcomes = await runTasks(tasks, runs, { ...options, signal: stop.signal, onEnd });
    expect(outcomes.get("fake-short")?.status).toBe("done");
    expect(savedPaper(directory, short as Task)?.complete).toBe(true);
    expect(existsSync(join(directory, "fake-endless"))).toBe(false);
    expect(log().slice(0, 2)).toEqual(["+ short sim", "- short sim"]);
  });
});

describe("what is saved", () => {
  it("counts for the same code and options only", async () => {
    const { directory, options } = setUp();
    const { tasks, plan: runs } = plan(["fake-framed"]);
    await runTasks(tasks, runs, options);
    const saved = (own: Partial<TaskOptions>) => savedPaper(directory, plan(["fake-framed"], own).tasks[0] as Task);
    const references = new Map([["fake-framed", { rate: [{ label: "ns3", values: { x: [0, 1], y: [0, 1] } }] }]]);
    const others = new Map([["fake-short", {}]]);
    expect(saved({})).toBeDefined();
    expect(saved({ references: others })).toBeDefined();
    for (const own of [{ seed: 2 }, { scale: 2 }, { clocks: ["sim"] }, { weir: "0.0.1" }, { references }] as const) {
      expect(saved(own), JSON.stringify(own)).toBeUndefined();
    }
    // What is about the wire alone does not matter without it.
    expect(plan(["fake-short"], { scale: 2 }).tasks[0]?.key).toBe(plan(["fake-short"]).tasks[0]?.key);
  });
});
