/** The line that says how far an experiment is, and at which of its runs. */

import { percent } from "../../src/result/report/format.js";
import { StatusLine } from "../../src/result/report/status_line.js";
import type { LiveStream } from "../../src/result/report/terminal.js";
import type { PaperProgress } from "../engine/run.js";
import { runName } from "../engine/text.js";

export class PaperProgressLine {
  private readonly status: StatusLine;
  private run = { number: 0, began: 0 };

  constructor(
    stream: LiveStream,
    private readonly id: string,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.status = new StatusLine(stream, now);
  }

  /** A run that begins is shown at once. */
  update(progress: PaperProgress): void {
    const { done, number, runs } = progress;
    const now = this.now();
    const begins = number !== this.run.number;
    if (begins) this.run = { number, began: now };
    const left = done > 0 ? `, ${Math.ceil(((now - this.run.began) * (1 / done - 1)) / 1000)} s left` : "";
    this.status.show(
      () => `${this.id}: run ${number} of ${runs} (${runName(progress)}) ${percent(done)}${left}`,
      begins,
    );
  }

  finish(): void {
    this.status.close();
  }
}
