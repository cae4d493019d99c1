/** The one line that says how far an experiment is. */
import { createLogUpdate } from "log-update";
import type { PaperProgress } from "../experiments/run.js";
import { runName } from "../experiments/text.js";
import { percent } from "../report/format.js";
import type { LiveStream } from "../report/terminal.js";
import { movesCursor } from "../report/terminal.js";

/** Between two lines where there is no terminal, and between two pictures where there is one, wall ms. */
const kLineMs = 10_000;
const kFrameMs = 200;

/** Redraws one line on a terminal; elsewhere writes a line every 10 seconds and one for each run. */
export class PaperProgressLine {
  private readonly draw: ReturnType<typeof createLogUpdate> | undefined;
  private last = Number.NEGATIVE_INFINITY;
  private started = { number: 0, at: 0 };
  private finished = false;

  constructor(
    private readonly stream: LiveStream,
    private readonly id: string,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.draw = movesCursor(stream) ? createLogUpdate(stream) : undefined;
  }

  update(progress: PaperProgress): void {
    const { done, number, runs } = progress;
    const now = this.now();
    const begins = number !== this.started.number;
    if (begins) this.started = { number, at: now };
    if (this.finished || (!begins && now - this.last < (this.draw ? kFrameMs : kLineMs))) return;
    this.last = now;
    const left = done > 0 ? `, ${Math.ceil(((now - this.started.at) * (1 / done - 1)) / 1000)} s left` : "";
    const line = `${this.id}: run ${number} of ${runs} (${runName(progress)}) ${percent(done)}${left}`;
    if (this.draw === undefined) this.stream.write(`${line}\n`);
    else this.draw(line.slice(0, Math.max(40, this.stream.columns ?? 80) - 1));
  }

  /** Clears the line, and gives the cursor back. Idempotent. */
  finish(): void {
    if (this.finished) return;
    this.finished = true;
    this.draw?.clear();
    this.draw?.done();
  }
}
