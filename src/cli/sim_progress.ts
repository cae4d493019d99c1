/** The one line that says how far a simulation is. */
import { createLogUpdate } from "log-update";
import { formatTime } from "../base/units.js";
import { count, percent, printable } from "../report/format.js";
import type { LiveStream } from "../report/terminal.js";
import { movesCursor } from "../report/terminal.js";
import type { SimProgress } from "../sim/types.js";

/** Between two lines where there is no terminal, wall s. */
const kLineSeconds = 10;

/** Redraws one line on a terminal; elsewhere writes a line every 10 seconds. */
export class ProgressLine {
  private readonly draw: ReturnType<typeof createLogUpdate> | undefined;
  private lastLine = 0;
  private before = { wall: 0, hops: 0 };

  constructor(
    private readonly stream: LiveStream,
    private readonly name: string,
  ) {
    this.draw = movesCursor(stream) ? createLogUpdate(stream) : undefined;
  }

  update(progress: SimProgress): void {
    if (this.draw === undefined && progress.wall_s - this.lastLine < kLineSeconds) return;
    const { wall, hops } = this.before;
    const pace = (progress.hops - hops) / Math.max(progress.wall_s - wall, 1e-3);
    this.lastLine = progress.wall_s;
    this.before = { wall: progress.wall_s, hops: progress.hops };
    const line = describe(this.name, progress, pace);
    if (this.draw === undefined) this.stream.write(`${line}\n`);
    else this.draw(line.slice(0, Math.max(40, this.stream.columns ?? 80) - 1));
  }

  /** Clears the line, and gives the cursor back. Idempotent. */
  finish(): void {
    this.draw?.clear();
    this.draw?.done();
  }
}

function describe(name: string, progress: SimProgress, pace: number): string {
  const { now_ns, until_ns, flows_ended, eta_s } = progress;
  return (
    `${printable(name)}: ${percent(until_ns > 0 ? now_ns / until_ns : 1)} ` +
    `${formatTime(Math.round(now_ns), 4)} of ${formatTime(until_ns, 4)}, ${count(pace)} hops/s, ` +
    `${flows_ended} of ${progress.flows_started} flows done, ${left(eta_s)} left`
  );
}

/** "45 s", "12 min", "3.5 h"; "?" where nobody knows. */
function left(seconds: number): string {
  if (!Number.isFinite(seconds)) return "?";
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
