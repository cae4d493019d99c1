/**
 * Structured logs: one JSON object per line, or a line for people when stderr is a terminal. Messages that come too often are
 * left out, and `left_out` of the next line of that kind has how many; errors are never left out. If a line cannot be written,
 * the daemon goes on: `lost` of the next line has how many.
 */
import pino from "pino";
import { harmless } from "../result/report/terminal.js";
import { LogLimit } from "./log_limit.js";
import { forPeople } from "./log_line.js";

export type Log = pino.Logger;

/** pino's number of the level "error". */
const kError = 50;

/** Takes text; process.stderr is one. */
export interface LogSink {
  isTTY?: boolean | undefined;
  write(text: string, written?: (error?: Error | null) => void): unknown;
}

export function createLog(name: string, sink: LogSink, now: () => number = () => performance.now()): Log {
  const limit = new LogLimit();
  let lost = 0;
  const options: pino.LoggerOptions = {
    hooks: {
      logMethod(given, method, level) {
        const args: unknown[] = typeof given[0] === "object" ? [...given] : [{}, ...given];
        const leftOut = level >= kError ? 0 : limit.pass(String(args[1]), now());
        if (leftOut === undefined) return;
        const more = { ...(leftOut > 0 && { left_out: leftOut }), ...(lost > 0 && { lost }) };
        args[0] = { ...(args[0] as object), ...more };
        method.apply(this, args as Parameters<typeof method>);
      },
    },
    base: { daemon: name, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  };
  const write = (line: string) => {
    const told = lost;
    sink.write(sink.isTTY ? harmless(forPeople(line)) : line, (error) => {
      if (error) lost++;
      else lost -= Math.min(lost, told);
    });
  };
  return pino(options, { write });
}
