/** The programs of a scenario: when each starts, and how it ended. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Result } from "../../result/result.js";
import type { Program } from "../../scenario/types.js";
import { type ProgramPlace, ProgramRun } from "./program_run.js";

const kStepMs = 20;
/** Time that the news of a program's end may take. */
const kPatienceMs = 2000;

export class Programs {
  readonly #runs: ReadonlyMap<string, ProgramRun>;

  /** @param placeOf Returns the place where a host's programs run. */
  constructor(
    programs: readonly Program[],
    placeOf: (host: string) => ProgramPlace,
    private readonly now: () => number,
  ) {
    this.#runs = new Map(programs.map((program) => [program.id, new ProgramRun(program, placeOf(program.host))]));
  }

  /** Starts the programs that may start now. */
  look(): void {
    for (const run of this.#runs.values()) {
      const { start, after } = run.program;
      if (run.started || run.over || this.now() < start) continue;
      const before = after.map((id) => this.#runs.get(id) as ProgramRun);
      const lost = before.find((one) => one.over && !one.ready);
      if (lost !== undefined) run.giveUp(`${lost.program.id} ${lost.failure ?? "ended before it was ready"}`);
      else if (before.every((one) => one.ready)) run.start();
    }
  }

  /** Whether nobody waits for any of them. */
  get done(): boolean {
    return this.#all.every((run) => run.over || run.program.background);
  }

  /** Lets nothing start any more; whatever runs is about to be ended. */
  over(why: string): void {
    for (const run of this.#all) {
      const waited = run.program.after.find((id) => !this.#runs.get(id)?.ready);
      if (run.started) run.told(why);
      else if (!run.program.background) run.giveUp(waited === undefined ? why : `${waited} was not ready`);
    }
  }

  /** Waits until it is known how each of them has ended, or time is up. */
  async settled(): Promise<void> {
    const limit = performance.now() + kPatienceMs;
    while (this.#all.some((run) => run.started && !run.over) && performance.now() < limit) await sleep(kStepMs);
  }

  results(): NonNullable<Result["programs"]> {
    return Object.fromEntries(this.#all.map((run) => [run.program.id, run.result()]));
  }

  close(): void {
    for (const run of this.#all) run.close();
  }

  get #all(): ProgramRun[] {
    return [...this.#runs.values()];
  }
}
