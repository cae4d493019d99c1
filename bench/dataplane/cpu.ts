/** Whose the CPUs were: a figure is worth little if something else had them. */
import { readFileSync } from "node:fs";
import { busySeconds } from "../../papers/engine/bench/cpu.js";

/** Above this a row says that it was disturbed, %. */
export const kDisturbed = 15;

/** Time on a CPU of a thread of this process, or of a process with one thread, s; 0 once it has ended. */
export function cpuSeconds(pid: string | number, thread?: string): number {
  try {
    const path = thread === undefined ? `/proc/${pid}` : `/proc/${pid}/task/${thread}`;
    return Number(readFileSync(`${path}/schedstat`, "utf8").split(" ")[0]) / 1e9;
  } catch {
    return 0;
  }
}

/** From its making on: what of the CPUs was neither this process's nor that of `pids`, which must not end meanwhile. */
export class CpuWatch {
  readonly #start = performance.now();
  readonly #before: number;

  /** @param more Seconds that others had whose work this is. */
  constructor(
    private readonly pids: readonly (string | number)[],
    private readonly more: () => number = () => 0,
  ) {
    this.#before = this.#foreign();
  }

  /** %, of one CPU. */
  others(): number {
    const seconds = (performance.now() - this.#start) / 1000;
    return Math.max(0, (100 * (this.#foreign() - this.#before)) / seconds);
  }

  #foreign(): number {
    const { user, system } = process.cpuUsage();
    return (
      this.pids.reduce<number>((left, pid) => left - cpuSeconds(pid), busySeconds()) -
      (user + system) / 1e6 -
      this.more()
    );
  }
}
