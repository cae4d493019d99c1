/** Load, pauses and marks of each link over the last moments: what one frame says alone would flicker. */
import type { Frame } from "../../../src/dashboard/protocol.js";

export interface LinkLoad {
  /** bit/s, averaged. */
  forward_bps: number;
  backward_bps: number;
  /** In the last second. */
  forward_pauses: number;
  backward_pauses: number;
  marks: number;
}

/** A second of frames counts pauses and marks, a quarter of it averages the load. */
const kCounted = 20;
const kAveraged = 5;

export class Meter {
  private readonly recent: Frame[] = [];

  take(frame: Frame): void {
    const last = this.recent.at(-1);
    if (last && (last.run !== frame.run || last.t_ns > frame.t_ns)) this.recent.length = 0;
    this.recent.push(frame);
    if (this.recent.length > kCounted) this.recent.shift();
  }

  get last(): Frame | undefined {
    return this.recent.at(-1);
  }

  load(link: number): LinkLoad {
    const averaged = this.recent.slice(-kAveraged).map(({ links }) => links[link]);
    const counted = this.recent.map(({ links }) => links[link]);
    const sum = (of: typeof counted, field: keyof LinkLoad) =>
      of.reduce((total, one) => total + (one?.[field] ?? 0), 0);
    const mean = (field: "forward_bps" | "backward_bps") => sum(averaged, field) / Math.max(1, averaged.length);
    return {
      forward_bps: mean("forward_bps"),
      backward_bps: mean("backward_bps"),
      forward_pauses: sum(counted, "forward_pauses"),
      backward_pauses: sum(counted, "backward_pauses"),
      marks: sum(counted, "marks"),
    };
  }
}
