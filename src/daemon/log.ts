/** Structured logs: one JSON object per line, or a line for people when stderr is a terminal. */
import pino from "pino";
import { harmless } from "../report/terminal.js";

export type Log = pino.Logger;

/** Anything that takes text, such as process.stderr. */
export interface LogSink {
  isTTY?: boolean | undefined;
  write(text: string): unknown;
}

export function createLog(name: string, sink: LogSink): Log {
  const options: pino.LoggerOptions = {
    base: { daemon: name, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  };
  const write = sink.isTTY
    ? (line: string) => sink.write(harmless(forPeople(line)))
    : (line: string) => sink.write(line);
  return pino(options, { write });
}

/** "12:04:31 warn  interface is down  port=a"; of a line of the log, with its line feed. */
export function forPeople(line: string): string {
  const { level, time, msg, daemon: _, pid: __, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const fields = Object.entries(rest).map(
    ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return `${[String(time).slice(11, 19), String(level).padEnd(5), msg, ...fields].join(" ")}\n`;
}
