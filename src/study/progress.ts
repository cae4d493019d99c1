/** Tells how far a study is: points that are done, that failed, and how long the rest takes at the pace so far. */
import { duration } from "../result/report/format.js";
import { StatusLine } from "../result/report/status_line.js";

export class PointsProgress {
  private readonly started: number;
  private readonly status: StatusLine;
  private finished = 0;
  private failed = 0;
  /** Parts that are done of the points that are running, by index. */
  private readonly running = new Map<number, number>();

  /** Weight of all points, and of those that are finished. */
  private readonly total: number;
  private done = 0;

  /** `weights`: about how long each point takes, in any unit, by index. `now` is the wall clock in ms. */
  constructor(
    stream: ConstructorParameters<typeof StatusLine>[0],
    private readonly weights: ReadonlyMap<number, number>,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.started = this.now();
    this.total = [...weights.values()].reduce((sum, weight) => sum + weight, 0);
    this.status = new StatusLine(stream, now);
  }

  /** Point `index` is done to this part, 0 to 1. */
  update(index: number, fraction: number): void {
    this.running.set(index, fraction);
    this.status.show(() => this.line());
  }

  end(index: number, failed: boolean): void {
    this.running.delete(index);
    this.finished++;
    this.done += this.weights.get(index) ?? 0;
    if (failed) this.failed++;
    this.status.show(() => this.line());
  }

  /** Takes the line off the terminal, like StatusLine. */
  clear(): void {
    this.status.clear();
  }

  close(): void {
    this.status.close();
  }

  private line(): string {
    const partly = [...this.running].reduce((sum, [index, part]) => sum + part * (this.weights.get(index) ?? 0), 0);
    const done = this.done + partly;
    const failed = this.failed > 0 ? `, ${this.failed} failed` : "";
    const seconds = (this.now() - this.started) / 1000;
    const left = done > 0 ? `, ${duration((seconds / done) * (this.total - done))} left` : "";
    return `${this.finished} of ${this.weights.size} points${failed}, ${duration(seconds)}${left}`;
  }
}
