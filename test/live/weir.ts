/** Runs the command line as a process of its own, on the small incast, and looks at what comes out and what is left. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, type TestContext, TestRunner } from "vitest";
import { NetworkNamespace } from "../../src/host/namespace.js";
import type { Result } from "../../src/result/result.js";
import { kRoot, kWeir } from "../command.js";
import { endWithTest } from "../end_with_test.js";
import { faultsOf } from "../fixtures/closed_schema.js";
import { kTestLimitMs } from "../limits.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { hasThread, kTestMarker, markedProcesses, networkState } from "./processes.js";

export const kIncast = join(kRoot, "examples/incast-4to1.yaml");
/** A tenth of its packets: what else the test has running gets CPU, too. */
export const kSlowLinks = ["--set", "topology.link.rate=4Gbps"];
/** Headroom for a busy machine, whose lateness must not make a lossless network lose. */
const kPatient = ["--set", "fidelity.lateness=60ms"];

/** The frames of a lab are always accounted for. */
export interface LabResult extends Result {
  frames: NonNullable<Result["frames"]>;
}

export interface Finished {
  status: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Running {
  child: ChildProcess;
  finished: Promise<Finished>;
  /** Waits until its native threads are there: links are built, and traffic starts within a moment. */
  untilTraffic(): Promise<void>;
  /** Waits until no process is left, and the network around it is as it was before. Call it last, once. */
  nothingLeft(): Promise<void>;
}

/** A folder for the running test's output, gone with it; everybody may write to it. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "weir-live-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  chmodSync(path, 0o777);
  return path;
}

/** They end with the process of their test, whatever has become of it. */
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/**
 * Starts `weir ...`, where we may in a network namespace of its own, in which nobody else makes and removes things. `as` goes in
 * front of the command (setpriv and its options). `here`: it runs in this process's own, where the test can reach it.
 */
export async function start(args: readonly string[], as: readonly string[] = [], here = false): Promise<Running> {
  const marker = randomUUID();
  const inside: string[] = [];
  let namespace: NetworkNamespace | undefined;
  if (!here && liveObstacle() === undefined) {
    namespace = await NetworkNamespace.create();
    inside.push("nsenter", `--net=${namespace.path}`, "--");
  }
  const before = networkState(inside);
  const command = [...inside, ...as, ...kWeir, ...args];
  const child = spawn(command[0] as string, command.slice(1), {
    cwd: kRoot,
    stdio: ["ignore", "pipe", "pipe"],
    // A session of its own: a killed lab cannot put back the CPU weight that it gave its session.
    detached: true,
    env: { ...process.env, [kTestMarker]: marker },
  });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      output[name] += text;
    });
  }
  const timer = setTimeout(() => child.kill("SIGKILL"), kTestLimitMs);
  running.add(child);
  if (TestRunner.getCurrentTest() !== undefined) endWithTest(child);
  const finished = new Promise<Finished>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (status, signal) => {
      clearTimeout(timer);
      running.delete(child);
      resolve({ status, signal, ...output });
    });
  });
  return {
    child,
    finished,
    untilTraffic: () => eventually(() => expect(hasThread(marker, "weir-nics"), output.stderr).toBe(true)),
    nothingLeft: () =>
      eventually(() => {
        expect(markedProcesses(marker)).toEqual([]);
        expect(networkState(inside)).toEqual(before);
      }).finally(() => namespace?.close()),
  };
}

/** `weir lab run` on a scenario to its end, quiet, with the result as JSON. */
export async function labRun(
  directory: string,
  options: { args?: readonly string[]; as?: readonly string[]; file?: string } = {},
): Promise<Finished & { result: LabResult }> {
  const out = join(directory, "out");
  const running = await start(
    ["lab", "run", options.file ?? kIncast, "--json", "--quiet", "--out", out, ...kPatient, ...(options.args ?? [])],
    options.as,
  );
  const finished = await running.finished;
  await running.nothingLeft();
  return { ...finished, result: contract(finished) };
}

/** Most runs in search of a valid one. */
const kRuns = 4;
type RunOptions = NonNullable<Parameters<typeof labRun>[1]>;

/** Repeats it until a run is valid: in one that is not the host was the bottleneck. Returns the last one if none is. */
export async function labRuns(directory: string, options: RunOptions): Promise<Finished & { result: LabResult }> {
  for (let i = 1; ; i++) {
    const run = await labRun(directory, options);
    if (run.result.fidelity.valid || i === kRuns) return run;
    rmSync(join(directory, "out"), { recursive: true });
  }
}

/**
 * Does the same for one test. `always` looks at the run, valid or not. If none is valid, the rest of the test is skipped, for the
 * reasons that the run gave.
 */
export async function validLabRun(
  context: TestContext,
  options: RunOptions,
  always: (result: LabResult) => void = () => {},
): Promise<Finished & { result: LabResult; path: string }> {
  const path = folder();
  const run = await labRuns(path, options);
  always(run.result);
  const { valid, reasons } = run.result.fidelity;
  if (!valid) context.skip(`none of ${kRuns} runs was valid on this host: ${reasons.join("; ")}`);
  return { ...run, path };
}

/** Reads the one JSON document on stdout, which keeps its schema, and fits the exit status. */
function contract({ status, stdout, stderr }: Finished): LabResult {
  expect([0, 3], `status ${status}: ${stderr}`).toContain(status);
  const result = JSON.parse(stdout) as LabResult;
  expect(faultsOf(result)).toEqual([]);
  // The test is not whether this host keeps up, but that it owns up to it.
  expect(result.fidelity.valid).toBe(status === 0);
  expect(result.fidelity.reasons.length > 0).toBe(status === 3);
  return result;
}

export function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
