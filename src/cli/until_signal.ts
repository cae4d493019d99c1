import { type CliContext, kExit } from "./context.js";

/** Runs `action`; SIGINT and SIGTERM end it early by its signal, and give the exit status. */
export async function untilSignal(
  { signals }: CliContext,
  action: (signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const abort = new AbortController();
  let ended: number | undefined;
  const end = (status: number) => () => {
    ended = status;
    abort.abort();
  };
  const onInterrupt = end(kExit.sigint);
  const onTerminate = end(kExit.sigterm);
  signals.on("SIGINT", onInterrupt).on("SIGTERM", onTerminate);
  try {
    const status = await action(abort.signal);
    return ended ?? status;
  } catch (error) {
    if (ended === undefined) throw error;
    return ended;
  } finally {
    signals.off("SIGINT", onInterrupt).off("SIGTERM", onTerminate);
  }
}
