/** Runs the command line as a process of its own, on the small incast, and looks at what comes out and what is left. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, vi } from "vitest";
import { NetworkNamespace } from "../../src/lab/namespace.js";
import type { Result } from "../../src/report/result.js";
import { faultsOf } from "../fixtures/closed_schema.js";
import { liveObstacle } from "./capability.js";
import { hasThread, kTestMarker, markedProcesses, networkState } from "./processes.js";

export const kRoot = fileURLToPath(new URL("../..", import.meta.url));
export const kIncast = join(kRoot, "examples/incast-4to1.yaml");
/** Headroom for a busy machine: what its lateness must not do is make a lossless network lose. */
const kPatient = ["--set", "fidelity.lateness=60ms"];
/** Longer than any run here takes on a busy machine. */
const kLimitMs = 50_000;

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
  /** Until its native threads are there: links are built, and traffic starts within a moment. */
  untilTraffic(): Promise<void>;
  /** Until no process is left, and the network around it is as it was before. Fails after ten seconds. Call it last, once. */
  nothingLeft(): Promise<void>;
}

/** A folder for the running test's output, gone with it; everybody may write to it. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "weir-live-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  chmodSync(path, 0o777);
  return path;
}

/**
 * Starts `weir ...`, where we may in a network namespace of its own, in which nobody else makes and removes things.
 * `as` goes in front of the command (setpriv and its options). `here`: in this process's own, where the test can reach it.
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
  const command = [...inside, ...as, process.execPath, "--import", "tsx", join(kRoot, "src/cli/main.ts"), ...args];
  const child = spawn(command[0] as string, command.slice(1), {
    cwd: kRoot,
    stdio: ["ignore", "pipe", "pipe"],
    // A session of its own: a killed lab cannot put back the CPU weight that it gave its session.
    detached: true,
    // tsx's cache is per user and may be another one's here.
    env: { ...process.env, [kTestMarker]: marker, TSX_DISABLE_CACHE: "1" },
  });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      output[name] += text;
    });
  }
  const timer = setTimeout(() => child.kill("SIGKILL"), kLimitMs);
  const finished = new Promise<Finished>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (status, signal) => {
      clearTimeout(timer);
      resolve({ status, signal, ...output });
    });
  });
  return {
    child,
    finished,
    untilTraffic: () =>
      vi.waitFor(() => expect(hasThread(marker, "weir-nics"), output.stderr).toBe(true), {
        timeout: 30_000,
        interval: 20,
      }),
    nothingLeft: () =>
      vi
        .waitFor(
          () => {
            expect(markedProcesses(marker)).toEqual([]);
            expect(networkState(inside)).toEqual(before);
          },
          { timeout: 10_000, interval: 50 },
        )
        .finally(() => namespace?.close()),
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

/** The one JSON document on stdout, which keeps its schema, and fits the exit status. */
function contract({ status, stdout, stderr }: Finished): LabResult {
  expect([0, 3], `status ${status}: ${stderr}`).toContain(status);
  const result = JSON.parse(stdout) as LabResult;
  expect(faultsOf(result)).toEqual([]);
  // Whether this host keeps up is not what is tested; that it owns up to it is.
  expect(result.fidelity.valid).toBe(status === 0);
  expect(result.fidelity.reasons.length > 0).toBe(status === 3);
  return result;
}

export function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
