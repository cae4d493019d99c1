/** A terminal that is ours for a while: alternate screen, no cursor, single keys. */
import { emitKeypressEvents } from "node:readline";
import type { LiveStream } from "../../result/report/terminal.js";
import type { Key } from "./choices.js";

/** Source of keys; process.stdin is one. */
export interface KeyStream extends NodeJS.ReadableStream {
  isTTY?: boolean;
  setRawMode?(on: boolean): unknown;
}

const kEnter = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
const kLeave = "\x1b[?25h\x1b[?1049l";
const kHome = "\x1b[H";
const kRestOfLine = "\x1b[K";

export class Terminal {
  private entered = false;
  private readonly onKeypress = (_: string | undefined, key: Key) => this.onKey(key);
  private readonly onExit = () => this.leave();

  constructor(
    private readonly input: KeyStream,
    private readonly output: LiveStream,
    private readonly onKey: (key: Key) => void,
  ) {}

  get size(): { columns: number; rows: number } {
    return { columns: this.output.columns ?? 80, rows: this.output.rows ?? 24 };
  }

  enter(): void {
    if (this.entered) return;
    this.entered = true;
    // The user gets the terminal back however this process ends.
    process.on("exit", this.onExit);
    this.output.write(kEnter);
    emitKeypressEvents(this.input);
    this.input.setRawMode?.(true);
    this.input.on("keypress", this.onKeypress).resume();
  }

  /** Draws over the picture before: nothing is cleared that is drawn again, so nothing flickers. */
  draw(lines: readonly string[]): void {
    if (!this.entered) return;
    this.output.write(`${kHome}${lines.map((line) => `${line}${kRestOfLine}`).join("\r\n")}`);
  }

  /** Gives the terminal back. Idempotent. */
  leave(): void {
    if (!this.entered) return;
    this.entered = false;
    process.off("exit", this.onExit);
    this.input.off("keypress", this.onKeypress).pause();
    this.input.setRawMode?.(false);
    this.output.write(kLeave);
  }
}
