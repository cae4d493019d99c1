/** The line that shows progress. */
import { createLogUpdate } from "log-update";
import { movesCursor, type Output } from "./terminal.js";

/** Time between two pictures on a terminal, and between two lines elsewhere, ms. */
const kFrameMs = 200;
const kLineMs = 10_000;
/** Width for a terminal that does not say its own, and the least width that is of any use. */
const kColumns = { usual: 80, least: 40 };

/** A line that is redrawn on a terminal; elsewhere one is written every ten seconds, so a task that ends sooner leaves nothing. */
export class StatusLine {
  private readonly draw: ReturnType<typeof createLogUpdate> | undefined;
  private last: number;
  private closed = false;

  /** `now`: a clock in ms. */
  constructor(
    private readonly stream: NodeJS.WritableStream & Output,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.draw = movesCursor(stream) ? createLogUpdate(stream) : undefined;
    this.last = this.now();
  }

  /** Whether it is one line of a terminal. */
  get redraws(): boolean {
    return this.draw !== undefined;
  }

  /** Shows what `line` gives, unless it has just shown something; `atOnce`: in any case. */
  show(line: () => string, atOnce = false): void {
    const now = this.now();
    if (this.closed || (!atOnce && now - this.last < (this.draw ? kFrameMs : kLineMs))) return;
    this.last = now;
    if (this.draw === undefined) this.stream.write(`${line()}\n`);
    else this.draw(line().slice(0, Math.max(kColumns.least, this.stream.columns ?? kColumns.usual) - 1));
  }

  /** Writes whole lines in its place; the next `show` is below them. */
  write(text: string): void {
    this.clear();
    this.stream.write(text);
  }

  /** Takes it off the terminal, for something else to be written; the next `show` draws it again. */
  clear(): void {
    this.draw?.clear();
    if (this.draw !== undefined) this.last = Number.NEGATIVE_INFINITY;
  }

  /** Leaves nothing behind on a terminal, and gives the cursor back. Idempotent. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.draw?.clear();
    this.draw?.done();
  }
}
