/** Progress of a simulation: how far it is, at what pace, and what it has cost so far. */
import type { SimulationProgress } from "../../native/simulation_types.js";
import type { SimPerformance, SimProgress } from "./types.js";

/** Wall s between two reports. */
const kEvery = 0.2;
/** Weight of the latest pace in the smoothed one. */
const kWeight = 0.2;

export class ProgressMeter {
  private readonly begin = performance.now();
  private readonly cpuBefore = process.cpuUsage();
  private reported = { wall: 0, done: 0 };
  /** Smoothed part of the run per wall s. */
  private pace: number | undefined;

  /** @param until Virtual time at which the run ends, ns. @param operations Of message graphs, with which it ends; 0: there are none. */
  constructor(
    private readonly until: number,
    private readonly report?: ((progress: SimProgress) => void) | undefined,
    private readonly operations = 0,
  ) {}

  /** Is called often; reports some 5 times a second, and at the end. */
  update({ now, events, hops, flows_started, flows_ended, operations_ended }: SimulationProgress): void {
    const wall = this.wall();
    const since = wall - this.reported.wall;
    const passed = this.until > 0 ? now / this.until : 1;
    const done = this.operations > 0 ? operations_ended / this.operations : passed;
    if (since < kEvery && done < 1) return;
    const latest = (done - this.reported.done) / Math.max(since, 1e-6);
    this.pace = this.pace === undefined ? latest : this.pace + kWeight * (latest - this.pace);
    this.reported = { wall, done };
    const eta = this.pace > 0 ? (1 - done) / this.pace : Number.POSITIVE_INFINITY;
    this.report?.({
      done,
      ...(this.operations > 0 && { operations: { ended: operations_ended, all: this.operations } }),
      now_ns: now,
      until_ns: this.until,
      events,
      hops,
      flows_started,
      flows_ended,
      wall_s: wall,
      eta_s: done >= 1 ? 0 : eta,
    });
  }

  performance(progress: SimulationProgress): SimPerformance {
    const { events, hops, threads, round, rounds, together, partitions, crossed, taken, waited } = progress;
    const { user, system } = process.cpuUsage(this.cpuBefore);
    const cpu = (user + system) / 1e6;
    return {
      cpu_s: cpu,
      wall_s: this.wall(),
      events,
      hops,
      hops_per_cpu_s: cpu > 0 ? hops / cpu : 0,
      threads,
      round_ns: round,
      rounds,
      ...(threads > 1 && {
        sharing: {
          partitions,
          together: together / Math.max(rounds, 1),
          crossing: crossed / Math.max(hops, 1),
          waiting: waited / Math.max(taken, 1),
        },
      }),
      rss_bytes: process.resourceUsage().maxRSS * 1024,
    };
  }

  private wall(): number {
    return (performance.now() - this.begin) / 1000;
  }
}
