/** Tasks on worker processes: what becomes of those that die, and of all when they are stopped. */
import { type ChildProcess, fork } from "node:child_process";
import { describe, expect, it } from "vitest";
import { type JobOptions, runJobs } from "../../../src/base/processes/jobs.js";
import { programFile } from "../../programs/files.js";

type Outcome = { status: string; by?: string };
type Options = JobOptions<string, string, number, Outcome>;

function setUp(own: Partial<Options> = {}) {
  const started: ChildProcess[] = [];
  const told: string[] = [];
  const options: Options = {
    setup: "us",
    jobs: 1,
    startWorker: () => {
      const child = fork(programFile("job_worker"), { stdio: ["ignore", "ignore", "pipe", "ipc"] });
      started.push(child);
      return child;
    },
    signal: new AbortController().signal,
    onProgress: () => {},
    onEnd: (task, { status }) => void told.push(`${task} ${status}`),
    ...own,
  };
  const nobodyLeft = () => started.every(({ exitCode, signalCode }) => (exitCode ?? signalCode) !== null);
  return { options, told, started, nobodyLeft };
}

describe("runJobs", () => {
  it("hands out tasks in their order, and ends its workers", async () => {
    const began: string[] = [];
    const { options, told, started, nobodyLeft } = setUp({ onBegin: (task) => void began.push(task) });
    await runJobs(["ok 1", "ok 2", "ok 3"], options);
    expect(began).toEqual(["ok 1", "ok 2", "ok 3"]);
    expect(told).toEqual(["ok 1 done", "ok 2 done", "ok 3 done"]);
    expect(started).toHaveLength(1);
    expect(nobodyLeft()).toBe(true);
  });

  it.each([
    [undefined, 1],
    [3, 3],
  ])("tries a task whose worker died (%s) in all", async (tries, times) => {
    const began: string[] = [];
    const onBegin = (task: string) => void began.push(task);
    const { options, told, nobodyLeft } = setUp({ onBegin, ...(tries !== undefined && { tries }) });
    await runJobs(["die", "ok"], options);
    expect(began.filter((task) => task === "die")).toHaveLength(times);
    expect(told.sort()).toEqual(["die crashed", "ok done"]);
    expect(nobodyLeft()).toBe(true);
  });

  it.each([false, true])(
    "ends what is under way when it is stopped, and begins nothing more (asks: %s)",
    async (asks) => {
      const stop = new AbortController();
      const { options, told, nobodyLeft } = setUp({ asks, signal: stop.signal, onProgress: () => stop.abort() });
      await runJobs(["wait", "ok"], options);
      expect(told).toEqual(["wait stopped"]);
      expect(nobodyLeft()).toBe(true);
    },
  );

  it("fails when a worker does not start, and leaves none of the others", async () => {
    const { options, started, nobodyLeft } = setUp({ jobs: 2 });
    const { startWorker } = options;
    const oneBroken = () => {
      if (started.length === 0) return startWorker();
      const child = fork("/nonexistent.mjs", { stdio: ["ignore", "ignore", "pipe", "ipc"], execArgv: [] });
      started.push(child);
      return child;
    };
    await expect(runJobs(["wait 1", "wait 2"], { ...options, startWorker: oneBroken })).rejects.toThrow(
      "a worker does not start",
    );
    expect(started).toHaveLength(2);
    expect(nobodyLeft()).toBe(true);
  });
});
