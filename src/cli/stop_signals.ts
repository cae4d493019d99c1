/** SIGINT and SIGTERM of a long run: the first asks it to stop, the second ends the process at once. */
import { type CliContext, kExit } from "./context.js";

export class StopSignals {
  /** Exit status of the first signal that came. */
  status: number | undefined;
  private readonly abort = new AbortController();
  private readonly listener = (signal: "SIGINT" | "SIGTERM") => this.stop(signal);

  constructor(
    private readonly context: Pick<CliContext, "signals" | "stderr" | "exit">,
    private readonly quiet: boolean,
  ) {
    context.signals.on("SIGINT", this.listener).on("SIGTERM", this.listener);
  }

  get signal(): AbortSignal {
    return this.abort.signal;
  }

  /** Stops listening for signals. */
  release(): void {
    this.context.signals.off("SIGINT", this.listener).off("SIGTERM", this.listener);
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
