/** Runs `weir top` at a terminal, until the user quits. */
import type { EventEmitter } from "node:events";
import type { LiveStream } from "../../result/report/terminal.js";
import type { Choices } from "./choices.js";
import type { Poll } from "./poll.js";
import type { Sample } from "./sample.js";
import { drawTop } from "./screen.js";
import { type KeyStream, Terminal } from "./terminal.js";

export interface LiveOptions {
  stdin: KeyStream;
  stdout: LiveStream;
  /** Emits SIGTSTP when the process is to stop, SIGCONT when it goes on after a stop, SIGHUP when the terminal is gone. */
  signals: EventEmitter;
  color: boolean;
  /** Stops the process, if somebody is there to continue it, and returns when it goes on. */
  suspend: () => void;
  /** Ends it when aborted. */
  signal: AbortSignal;
}

/** Returns true when the user pressed Ctrl-C. */
export async function liveTop(poll: Poll, choices: Choices, options: LiveOptions): Promise<boolean> {
  return new LiveTop(poll, choices, options).run();
}

class LiveTop {
  private readonly terminal: Terminal;
  private sample: Sample | undefined;
  private interrupted = false;
  private readonly over = new AbortController();
  private wake: () => void = () => {};
  private readonly redraw = () => this.draw();
  private readonly suspend = () => {
    this.terminal.leave();
    this.listen("off");
    this.options.suspend();
    this.listen("on");
    this.resume();
  };
  /** This is also called after a stop that nobody asked us about: the shell has changed the terminal's mode since. */
  private readonly resume = () => {
    this.terminal.leave();
    this.terminal.enter();
    this.draw();
  };

  constructor(
    private readonly poll: Poll,
    private readonly choices: Choices,
    private readonly options: LiveOptions,
  ) {
    this.terminal = new Terminal(options.stdin, options.stdout, (key) => {
      const wish = choices.take(key);
      if (wish === "quit") {
        this.interrupted = key.ctrl === true;
        this.end();
      } else if (wish === "suspend") this.suspend();
      else this.draw();
    });
  }

  async run(): Promise<boolean> {
    const { stdout, signals, signal } = this.options;
    const end = () => this.end();
    signal.addEventListener("abort", end);
    stdout.on("resize", this.redraw).on("error", end);
    signals.on("SIGHUP", end);
    this.listen("on");
    this.terminal.enter();
    try {
      this.draw();
      while (!this.over.signal.aborted && !signal.aborted) {
        if (!this.choices.paused || this.sample === undefined) this.sample = await this.poll.next();
        this.draw();
        await this.rest();
      }
      return this.interrupted;
    } finally {
      this.terminal.leave();
      this.listen("off");
      stdout.off("resize", this.redraw).off("error", end);
      signals.off("SIGHUP", end);
      signal.removeEventListener("abort", end);
    }
  }

  private listen(how: "on" | "off"): void {
    this.options.signals[how]("SIGTSTP", this.suspend)[how]("SIGCONT", this.resume);
  }

  private end(): void {
    this.over.abort();
    this.wake();
  }

  private draw(): void {
    this.terminal.draw(drawTop(this.sample, this.choices, this.terminal.size, this.options.color));
  }

  private rest(): Promise<void> {
    return new Promise((resolve) => {
      if (this.over.signal.aborted) {
        resolve();
        return;
      }
      const timer = setTimeout(resolve, this.choices.interval * 1000);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
