/** Changes of service rates while a lab runs: applied when their time has come, with how late they were. */
import { setTimeout as sleep } from "node:timers/promises";
import type { NativeWorker, WorkerConfig } from "../../native/types.js";

/** One moment at which rates change. */
export interface PlannedChange {
  /** Meant ns from the start of traffic. */
  at: number;
  /** The switches' worker as it is from then on. */
  config: WorkerConfig;
}

/** A change that was made. */
export interface AppliedChange {
  /** Meant ns from the start of traffic. */
  at: number;
  /** Lateness of the change, wall ns. */
  late: number;
}

export class RateChanges {
  readonly applied: AppliedChange[] = [];

  /**
   * @param planned In order of time.
   * @param clock When traffic starts, wall ns, and the present.
   */
  constructor(
    private readonly worker: Pick<NativeWorker, "reconfigure">,
    private planned: readonly PlannedChange[],
    private readonly clock: { begin: number; scale: number; now(): number },
  ) {}

  /** Makes the changes whose time has come. */
  apply(): void {
    for (let next = this.next(); next !== undefined && this.timeOf(next) <= this.clock.now(); next = this.next()) {
      this.worker.reconfigure(next.config);
      this.applied.push({ at: next.at, late: this.clock.now() - this.timeOf(next) });
    }
  }

  /** Puts the changes still to come on top of another configuration. */
  replan(config: (at: number) => WorkerConfig): void {
    const made = this.applied.length;
    this.planned = this.planned.map((change, i) => (i < made ? change : { at: change.at, config: config(change.at) }));
  }

  /** Sleeps `ms`, or less when a change is due before. */
  async wait(ms: number): Promise<void> {
    const next = this.next();
    const left = next === undefined ? ms : (this.timeOf(next) - this.clock.now()) / 1e6;
    await sleep(Math.max(0, Math.min(ms, left)));
  }

  private next(): PlannedChange | undefined {
    return this.planned[this.applied.length];
  }

  private timeOf({ at }: PlannedChange): number {
    return this.clock.begin + at * this.clock.scale;
  }
}
