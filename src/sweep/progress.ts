/** Progress of a sweep on stderr: one line that is redrawn on a terminal, elsewhere a line every ten seconds. */
import { createLogUpdate } from "log-update";
import { duration } from "../report/format.js";
import type { LiveStream } from "../report/terminal.js";
import { movesCursor } from "../report/terminal.js";

const kFrameMs = 200;
const kLineMs = 10_000;

export class SweepProgress {
  private readonly draw: ReturnType<typeof createLogUpdate> | undefined;
  private readonly started: number;
  private lastShown: number;
  private finished = 0;
  private failed = 0;
  /** Of points that are running, by index: how much is done. */
  private readonly running = new Map<number, number>();

  /** `total` points are to be run. `now` is the wall clock in ms. */
  constructor(
    private readonly stream: LiveStream,
    private readonly total: number,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.draw = movesCursor(stream) ? createLogUpdate(stream) : undefined;
    this.started = this.now();
    this.lastShown = this.draw ? Number.NEGATIVE_INFINITY : this.started;
  }

  /** Point `index` is done to this part, 0 to 1. */
  update(index: number, fraction: number): void {
    this.running.set(index, fraction);
    this.show();
  }

  end(index: number, failed: boolean): void {
    this.running.delete(index);
    this.finished++;
    if (failed) this.failed++;
    this.show();
  }

  /** Takes the line off the terminal, for something else to be written; the next update draws it again. */
  clear(): void {
    this.draw?.clear();
    this.lastShown = this.draw ? Number.NEGATIVE_INFINITY : this.lastShown;
  }

  /** Leaves nothing behind on a terminal, and gives the cursor back. */
  close(): void {
    this.draw?.clear();
    this.draw?.done();
  }

  private show(): void {
    const now = this.now();
    if (now - this.lastShown < (this.draw ? kFrameMs : kLineMs)) return;
    this.lastShown = now;
    if (this.draw) this.draw(this.line(now));
    else this.stream.write(`${this.line(now)}\n`);
  }

  private line(now: number): string {
    const partly = [...this.running.values()].reduce((sum, fraction) => sum + fraction, 0);
    const done = this.finished + partly;
    const failed = this.failed > 0 ? `, ${this.failed} failed` : "";
    const seconds = (now - this.started) / 1000;
    const left = done > 0 ? `, ${duration((seconds / done) * (this.total - done))} left` : "";
    return `${this.finished} of ${this.total} points${failed}, ${duration(seconds)}${left}`;
  }
}
