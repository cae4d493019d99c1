/** Shows something again and again: in place at a terminal, one below the other elsewhere. */
import { setTimeout as sleep } from "node:timers/promises";
import { InvalidArgumentError, Option } from "commander";
import { createLogUpdate } from "log-update";
import { movesCursor } from "../report/terminal.js";
import { type CliContext, kExit } from "./context.js";

const kShortest = 0.1;
const kLongest = 3600;

export const intervalOption = (description: string) =>
  new Option("--interval <seconds>", description).default(1).argParser(intervalOf);

function intervalOf(text: string): number {
  const seconds = Number(text);
  if (seconds >= kShortest && seconds <= kLongest) return seconds;
  throw new InvalidArgumentError(`It is a number of seconds, from ${kShortest} to ${kLongest}.`);
}

/** Until SIGINT or SIGTERM, which is how it is meant to end. */
export async function repeat(context: CliContext, seconds: number, look: () => Promise<string>): Promise<number> {
  const { stdout, signals } = context;
  const abort = new AbortController();
  const stop = () => abort.abort();
  signals.on("SIGINT", stop).on("SIGTERM", stop);
  stdout.on("error", stop);
  const draw = movesCursor(stdout) ? createLogUpdate(stdout) : undefined;
  try {
    while (!abort.signal.aborted) {
      const text = await look();
      if (draw === undefined) stdout.write(text);
      else draw(topLines(text.trimEnd(), stdout.rows));
      await sleep(seconds * 1000, undefined, { signal: abort.signal }).catch(() => {});
    }
    return kExit.ok;
  } finally {
    draw?.done();
    stdout.off("error", stop);
    signals.off("SIGINT", stop).off("SIGTERM", stop);
  }
}

/** The first lines, as many as there is room for; the cursor is in the last. */
function topLines(text: string, rows = 24): string {
  const lines = text.split("\n");
  const room = Math.max(1, rows - 1);
  if (lines.length <= room) return text;
  return [...lines.slice(0, room - 1), `... ${lines.length - room + 1} lines more`].join("\n");
}
