/** The line that shows progress. */
import { clearLine, cursorTo } from "node:readline";
import { movesCursor, type Output } from "./terminal.js";

/** Time between two pictures on a terminal, and between two lines elsewhere, ms. */
const kFrameMs = 200;
const kLineMs = 10_000;
/** Width for a terminal that does not say its own, and the least width that is of any use. */
const kColumns = { usual: 80, least: 40 };

/** A line that is redrawn on a terminal; elsewhere one is written every ten seconds, so a task that ends sooner leaves nothing. */
export class StatusLine {
  private last: number;
  private closed = false;
  /** Whether there is something of it on the terminal. */
  private shown = false;
  /** Whether it is one line of a terminal. */
  readonly redraws: boolean;

  /** `now`: a clock in ms. */
  constructor(
    private readonly stream: NodeJS.WritableStream & Output,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.redraws = movesCursor(stream);
    this.last = this.now();
  }

  /** Shows what `line` gives, unless it has just shown something; `atOnce`: in any case. */
  show(line: () => string, atOnce = false): void {
    const now = this.now();
    if (this.closed || (!atOnce && now - this.last < (this.redraws ? kFrameMs : kLineMs))) return;
    this.last = now;
    if (!this.redraws) {
      this.stream.write(`${line()}\n`);
      return;
    }
    this.erase();
    this.shown = true;
    this.stream.write(line().slice(0, Math.max(kColumns.least, this.stream.columns ?? kColumns.usual) - 1));
  }

  /** Writes whole lines in its place; the next `show` is below them. */
  write(text: string): void {
    this.clear();
    this.stream.write(text);
  }

  /** Takes it off the terminal, for something else to be written; the next `show` draws it again. */
  clear(): void {
    this.erase();
    if (this.redraws) this.last = Number.NEGATIVE_INFINITY;
  }

  /** Leaves nothing behind on a terminal. Idempotent. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.erase();
  }

  private erase(): void {
    if (!this.shown) return;
    this.shown = false;
    cursorTo(this.stream, 0);
    clearLine(this.stream, 0);
  }
}
