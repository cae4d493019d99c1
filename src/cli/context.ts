/** Parts that all verbs share: where to write, exit statuses, and how errors look. */

import type { EventEmitter } from "node:events";
import type { Command } from "commander";
import { fileReason, ScenarioError, UnreadableFile, WeirError } from "../base/error.js";
import { kExit } from "../base/exit_status.js";
import type { Clocks } from "../clocks/clocks.js";
import type { Handed } from "../host/rootless.js";
import type { LiveStream } from "../result/report/terminal.js";
import { harmless, wantsColor } from "../result/report/terminal.js";
import type { FileRequest } from "../scenario/places.js";
import type { KeyStream } from "../watch/top/terminal.js";

export { kExit };

/** The process as the verbs see it; tests give their own. */
export interface CliContext {
  stdin: KeyStream;
  stdout: LiveStream;
  stderr: LiveStream;
  /** Emits SIGINT and SIGTERM. */
  signals: EventEmitter;
  /** Ends the process at once. */
  exit: (status: number) => void;
  /** They are loaded when needed: with them come the checks of a whole scenario. */
  clocks: () => Promise<Clocks>;
  /**
   * Runs the whole command again with the rights a lab needs, and returns its exit status; undefined: we have them. @param handed
   * Things that the other process cannot get by itself.
   */
  elevate: (handed?: Handed) => Promise<number | undefined>;
}

/** Adds a verb, which tells its exit status by calling `done`. */
export type AddVerb = (parent: Command, context: CliContext, done: (status: number) => void) => void;

/** Bad usage or bad input: exit status 2. */
export class UsageError extends WeirError {}

/** Runs `action`; an error made for the user becomes one with exit status 2. */
export function asUsage<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof WeirError) || error instanceof ScenarioError) throw error;
    throw asUsageError(error);
  }
}

export const asUsageError = (error: WeirError) =>
  new UsageError(error.message, { cause: error, field: error.field, hint: error.hint });

export function exitStatusOf(error: unknown): number {
  const byUser = [UsageError, ScenarioError, UnreadableFile].some((kind) => error instanceof kind);
  return byUser ? kExit.usage : kExit.failure;
}

/** Returns "error: message", and below it " hint: ..." if there is one (any error may carry a hint). */
export function describeError(error: unknown): string {
  const message = error instanceof Error ? messageOf(error) : String(error);
  const hint = error instanceof Error && "hint" in error && typeof error.hint === "string" ? error.hint : "";
  return harmless(`error: ${message}\n${hint === "" ? "" : `  hint: ${hint}\n`}`);
}

/** Warns of things that are questionable, but in nobody's way. */
export function warn({ stderr }: Pick<CliContext, "stderr">, text: string): void {
  stderr.write(harmless(`warning: ${text}\n`));
}

/** Message without Node.js's code and system call, if the error is about a file. */
function messageOf(error: Error): string {
  const reason = error instanceof WeirError || !("syscall" in error) ? undefined : fileReason(error);
  if (reason === undefined) return error.message;
  // Files to be read have been looked for already, so it is a folder to write into that is not there.
  const why = "code" in error && error.code === "ENOENT" ? "no such file or folder" : reason;
  return "path" in error ? `${error.path}: ${why}` : why;
}

/** Prints the document of `--json`, or text for people; adds the last line feed. */
export function print(
  { stdout }: Pick<CliContext, "stdout">,
  json: boolean | undefined,
  document: unknown,
  text: (color: boolean) => string,
): void {
  stdout.write(`${json ? JSON.stringify(document, undefined, 2) : text(wantsColor(stdout))}\n`);
}

/** Collects a repeatable option. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** Collects "sw:sw.pcap" and "h1--sw:a.pcap": everything up to the first colon is the place. */
export const placesAndFiles =
  (option: string, example: string) =>
  (value: string, before: readonly FileRequest[] = []): FileRequest[] => {
    const colon = value.indexOf(":");
    if (colon > 0 && colon < value.length - 1) {
      return [...before, { target: value.slice(0, colon), file: value.slice(colon + 1) }];
    }
    throw new UsageError(`${option} ${value}: no file`, { hint: `use LINK:FILE or NODE:FILE, for example ${example}` });
  };
