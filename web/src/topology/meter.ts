/** Measures load, pauses and marks of each link over the last moments: values of one frame alone would flicker. */
import type { Frame } from "../../../src/watch/dashboard/protocol.js";

export interface LinkLoad {
  /** Load in bit/s, averaged. */
  forward_bps: number;
  backward_bps: number;
  /** Pauses in the last second. */
  forward_pauses: number;
  backward_pauses: number;
  marks: number;
}

/** Times in wall ns in which pauses and marks are counted, and over which the load is averaged. */
const kCountedNs = 1e9;
const kAveragedNs = 0.25e9;

export class Meter {
  private readonly recent: Frame[] = [];

  /** @param scale Ratio of wall time to the frames' time. */
  constructor(private readonly scale: number) {}

  take(frame: Frame): void {
    const { recent } = this;
    const last = recent.at(-1);
    if (last && (last.run !== frame.run || last.t_ns > frame.t_ns)) recent.length = 0;
    recent.push(frame);
    while (this.ago(recent[0] as Frame) >= kCountedNs) recent.shift();
  }

  get last(): Frame | undefined {
    return this.recent.at(-1);
  }

  load(link: number): LinkLoad {
    const averaged = this.recent.filter((frame) => this.ago(frame) < kAveragedNs);
    const sum = (frames: readonly Frame[], of: (frame: Frame) => number | undefined) =>
      frames.reduce((total, frame) => total + (of(frame) ?? 0), 0);
    const took = ({ since_ns, t_ns }: Frame) => t_ns - since_ns;
    const mean = (field: "forward_bps" | "backward_bps") =>
      sum(averaged, (frame) => (frame.links[link]?.[field] ?? 0) * took(frame)) / Math.max(1, sum(averaged, took));
    const counted = (field: "forward_pauses" | "backward_pauses" | "marks") =>
      sum(this.recent, (frame) => frame.links[link]?.[field]);
    return {
      forward_bps: mean("forward_bps"),
      backward_bps: mean("backward_bps"),
      forward_pauses: counted("forward_pauses"),
      backward_pauses: counted("backward_pauses"),
      marks: counted("marks"),
    };
  }

  /** Wall ns between the end of this frame and that of the last. */
  private ago({ t_ns }: Frame): number {
    return ((this.last?.t_ns ?? t_ns) - t_ns) * this.scale;
  }
}
