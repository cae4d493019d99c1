/** The system that checks look at: files, programs and a few measurements. Tests give their own. */
import { spawnSync } from "node:child_process";
import { accessSync, constants, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { join } from "node:path";
import { loadAddon } from "../../native/addon.js";
import type { InterfaceProbe, NativeAddon } from "../../native/types.js";
import { loadRawSocket } from "../../probe/raw_socket.js";
import { type ControlPlace, controlPlace, controlPlaceProblem } from "../control_directory.js";

export interface ProgramOutput {
  /** Null if a signal ended it. */
  status: number | null;
  stdout: string;
  stderr: string;
}

export interface System {
  /** Version of Node.js, such as "20.17.0". */
  nodeVersion: string;
  uid: number;
  /** CPUs of the machine, and those that this process may use. */
  cpus: { present: number; allowed: number };
  /** The text of a file; undefined if it is not there or not ours to read. */
  readText(path: string): string | undefined;
  readLink(path: string): string | undefined;
  /** Lists the names in a folder; none if there is no such folder. */
  list(path: string): string[];
  /** Finds the path of a program on PATH. */
  find(program: string): string | undefined;
  /** Runs a program to its end; undefined if there is no such program. */
  run(program: string, args: readonly string[]): ProgramOutput | undefined;
  /** An interface of this network namespace; undefined where the native core does not load, or it is gone. */
  probe(name: string): InterfaceProbe | undefined;
  /** Place of control sockets, and what is wrong with it. */
  controlPlace(): ControlPlace & { problem: string | undefined };
  /** Both loaders throw the error that the user would see. */
  loadNative(): void;
  loadRawSocket(): void;
  /** Median time that a sleep of 100 us takes, ns. */
  measureSleep(): number;
  /** Time that reading the clock takes, ns. */
  measureClock(): number;
}

/** Time limit that is longer than any program here takes. */
const kLimitMs = 10_000;
/** These folders are not on an ordinary user's PATH everywhere, yet their programs can tell much without privileges. */
const kMorePath = ":/usr/sbin:/sbin";

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

export const thisSystem: System = {
  nodeVersion: process.versions.node,
  uid: process.getuid?.() ?? -1,
  cpus: { present: cpus().length, allowed: availableParallelism() },
  readText: (path) => attempt(() => readFileSync(path, "utf8")),
  readLink: (path) => attempt(() => readlinkSync(path)),
  list: (path) => attempt(() => readdirSync(path)) ?? [],
  find: (program) =>
    (process.env.PATH ?? "")
      .split(":")
      .map((folder) => join(folder, program))
      .find((path) => attempt(() => accessSync(path, constants.X_OK) ?? true)),
  run(program, args) {
    const { error, status, stdout, stderr } = spawnSync(program, args, {
      encoding: "utf8",
      timeout: kLimitMs,
      env: { ...process.env, LC_ALL: "C", PATH: (process.env.PATH ?? "") + kMorePath },
    });
    return (error as NodeJS.ErrnoException | undefined)?.code === "ENOENT" ? undefined : { status, stdout, stderr };
  },
  probe: (name) => attempt(() => loadAddon<NativeAddon>().probeInterface(name)),
  controlPlace() {
    const place = controlPlace();
    return { ...place, problem: controlPlaceProblem(place) };
  },
  loadNative: () => void loadAddon<unknown>(),
  loadRawSocket: () => void loadRawSocket(),
  measureSleep() {
    const nobody = new Int32Array(new SharedArrayBuffer(4));
    const times = Array.from({ length: 21 }, () => {
      const before = process.hrtime.bigint();
      Atomics.wait(nobody, 0, 0, 0.1);
      return Number(process.hrtime.bigint() - before);
    });
    return times.sort((a, b) => a - b)[10] ?? 0;
  },
  measureClock() {
    const reads = 20_000;
    const before = process.hrtime.bigint();
    for (let i = 0; i < reads; i++) process.hrtime.bigint();
    return Number(process.hrtime.bigint() - before) / reads;
  },
};
