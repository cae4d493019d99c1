/** The one line that says how far a simulation is. */
import { formatTime } from "../base/units.js";
import type { SimProgress } from "../clocks/sim/types.js";
import { count, percent, printable } from "../result/report/format.js";
import { StatusLine } from "../result/report/status_line.js";
import type { LiveStream } from "../result/report/terminal.js";

export class ProgressLine {
  private readonly status: StatusLine;
  private wall = 0;
  private shown = { wall: 0, hops: 0 };

  constructor(
    stream: LiveStream,
    private readonly name: string,
  ) {
    this.status = new StatusLine(stream, () => this.wall * 1000);
  }

  update(progress: SimProgress): void {
    this.wall = progress.wall_s;
    this.status.show(() => {
      const { wall, hops } = this.shown;
      this.shown = { wall: progress.wall_s, hops: progress.hops };
      return describe(this.name, progress, (progress.hops - hops) / Math.max(progress.wall_s - wall, 1e-3));
    });
  }

  finish(): void {
    this.status.close();
  }
}

function describe(name: string, progress: SimProgress, pace: number): string {
  const { now_ns, until_ns, flows_ended, operations, eta_s } = progress;
  const [now, until] = [formatTime(Math.round(now_ns), 4), formatTime(until_ns, 4)];
  const reached = operations === undefined ? `${now} of ${until}` : now;
  const done =
    operations === undefined
      ? `${flows_ended} of ${progress.flows_started} flows done`
      : `${count(operations.ended)} of ${count(operations.all)} operations done`;
  return `${printable(name)}: ${percent(progress.done)} ${reached}, ${count(pace)} hops/s, ${done}, ${left(eta_s)} left`;
}

/** Returns "45 s", "12 min", "3.5 h"; "?" if nobody knows. */
function left(seconds: number): string {
  if (!Number.isFinite(seconds)) return "?";
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
