/** SIGINT and SIGTERM of a long run: the first asks it to stop, the second ends the process at once. */
import { type CliContext, kExit } from "./context.js";

export class StopSignals {
  /** Exit status of the first signal that came. */
  status: number | undefined;
  private readonly abort = new AbortController();
  private readonly listeners = [
    ["SIGINT", () => this.stop("SIGINT")],
    ["SIGTERM", () => this.stop("SIGTERM")],
  ] as const;

  constructor(
    private readonly context: Pick<CliContext, "signals" | "stderr" | "exit">,
    private readonly quiet: boolean,
  ) {
    for (const [signal, listener] of this.listeners) context.signals.on(signal, listener);
  }

  get signal(): AbortSignal {
    return this.abort.signal;
  }

  /** Stops listening for signals. */
  release(): void {
    for (const [signal, listener] of this.listeners) this.context.signals.off(signal, listener);
  }

  private stop(signal: "SIGINT" | "SIGTERM"): void {
    const wanted = signal === "SIGINT" ? kExit.sigint : kExit.sigterm;
    if (this.status !== undefined) {
      this.context.exit(wanted);
      return;
    }
    this.status = wanted;
    if (!this.quiet) this.context.stderr.write(`${signal}: stopping; once more to quit at once\n`);
    this.abort.abort(new Error(`ended by ${signal}`));
  }
}

/** Runs `action`, which SIGINT and SIGTERM end early; they give the exit status, and a second one ends the process at once. */
export async function untilSignal(
  context: Pick<CliContext, "signals" | "stderr" | "exit">,
  action: (signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const stop = new StopSignals(context, true);
  try {
    const status = await action(stop.signal);
    return stop.status ?? status;
  } catch (error) {
    if (stop.status === undefined) throw error;
    return stop.status;
  } finally {
    stop.release();
  }
}
