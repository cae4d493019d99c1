/** The one line that says how far the equations are solved. Most runs are done before it is drawn. */
import { createLogUpdate } from "log-update";
import { percent, printable } from "../report/format.js";
import type { LiveStream } from "../report/terminal.js";
import { movesCursor } from "../report/terminal.js";

const kFrameMs = 200;
/** Where there is no terminal. */
const kLineMs = 10_000;

export class ModelProgress {
  private readonly draw: ReturnType<typeof createLogUpdate> | undefined;
  private last: number;

  constructor(
    private readonly stream: LiveStream,
    private readonly name: string,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.draw = movesCursor(stream) ? createLogUpdate(stream) : undefined;
    this.last = this.now();
  }

  /** Done to this part, 0 to 1. */
  update(part: number): void {
    const now = this.now();
    if (now - this.last < (this.draw ? kFrameMs : kLineMs)) return;
    this.last = now;
    const line = `${printable(this.name)}: ${percent(part)}`;
    if (this.draw) this.draw(line);
    else this.stream.write(`${line}\n`);
  }

  /** Clears the line, and gives the cursor back. Idempotent. */
  finish(): void {
    this.draw?.clear();
    this.draw?.done();
  }
}
