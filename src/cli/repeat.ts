/** Shows something again and again: in place at a terminal, one below the other elsewhere. */
import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { InvalidArgumentError, Option } from "commander";
import type { LiveStream } from "../result/report/terminal.js";
import { movesCursor } from "../result/report/terminal.js";
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

/** Runs until SIGINT or SIGTERM, its normal end. */
export async function repeat(context: CliContext, seconds: number, look: () => Promise<string>): Promise<number> {
  const { stdout, signals } = context;
  const abort = new AbortController();
  const stop = () => abort.abort();
  signals.on("SIGINT", stop).on("SIGTERM", stop);
  stdout.on("error", stop);
  const draw = movesCursor(stdout) ? (await import("log-update")).createLogUpdate(stdout) : undefined;
  try {
    while (!abort.signal.aborted) {
      const text = await look();
      if (draw === undefined) stdout.write(text);
      else draw(topLines(text.trimEnd(), stdout));
      await sleep(seconds * 1000, undefined, { signal: abort.signal }).catch(() => {});
    }
    return kExit.ok;
  } finally {
    draw?.done();
    stdout.off("error", stop);
    signals.off("SIGINT", stop).off("SIGTERM", stop);
  }
}

/** Takes as many of the first lines as there is room for, wrapped; the cursor is in the last. */
function topLines(text: string, { columns = 80, rows = 24 }: LiveStream): string {
  const lines = text.split("\n");
  const heights = lines.map((line) => Math.max(1, Math.ceil(stripVTControlCharacters(line).length / columns)));
  const room = Math.max(1, rows - 1);
  if (sum(heights) <= room) return text;
  let shown = 0;
  while (sum(heights.slice(0, shown + 1)) < room) shown++;
  return [...lines.slice(0, shown), `... ${lines.length - shown} lines more`].join("\n");
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
