/**
 * A scenario can run code: commands of its traffic, and a congestion control in a library. In the user's own files the user wants
 * that; for files of anybody else it is said, and asked. A file is another's if another user owns it, or everybody may write it.
 */
import { statSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import type { ClockName } from "../clocks/clock.js";
import type { LibraryChoice } from "../congestion/algorithm.js";
import { type Handed, inUserNamespace } from "../host/rootless.js";
import { printable } from "../result/report/format.js";
import type { Scenario } from "../scenario/types.js";
import { type CliContext, UsageError } from "./context.js";

const kForEverybody = 0o002;
const kRoot = 0;

export interface TrustOptions {
  trust?: boolean;
}

export const addTrustOption = (command: Command): Command =>
  command.option("--trust", "run the commands and the library that another user's file names, without asking");

/** What of a scenario is code. */
type Running = Pick<Scenario, "congestion" | "programs">;

/** The library that the scenario loads. */
export function libraryOf({ congestion }: Pick<Scenario, "congestion">): string | undefined {
  return congestion.algorithm === "library" ? (congestion.parameters as LibraryChoice).file : undefined;
}

/**
 * Comes back if scenarios of `file` may run the commands and the libraries that they name.
 * @param runsCommands Says whether commands of its traffic run; a library runs in any case.
 * @throws UsageError if it may not, or nobody can be asked
 */
export async function askForTrust(
  context: CliContext,
  file: string,
  scenarios: readonly Running[],
  { trust = false }: TrustOptions,
  runsCommands = true,
): Promise<void> {
  const libraries = new Set(scenarios.flatMap((one) => libraryOf(one) ?? []));
  const commands = scenarios.flatMap(({ programs }) => (runsCommands ? programs : []));
  const lines = new Set([
    ...commands.map(({ host, run }) => `  on ${host}: ${run}`),
    ...[...libraries].map((library) => `  the library ${library}`),
  ]);
  // In a namespace of its own files have other owners, and the process that made it has asked.
  if (trust || inUserNamespace() || lines.size === 0) return;
  const reasons = [file, ...libraries].flatMap((one) => whyNotOurs(one) ?? []);
  if (reasons.length === 0) return;
  context.stderr.write(`${reasons.join("; ")}. This would run, as you:\n${[...lines].map(printable).join("\n")}\n`);
  if (await agreed(context)) return;
  throw new UsageError(`${file} may not run that`, { hint: "read the file; with --trust it may" });
}

/**
 * Asks for trust in what `scenarios` of `file` run on these clocks, and for the rights that it takes. Comes back with an exit status where
 * another process has done it all. @throws UsageError where that may not run
 */
export async function readyToRun(
  context: CliContext,
  file: string,
  scenarios: readonly Running[],
  clocks: readonly ClockName[],
  choice: TrustOptions,
  handed?: Handed,
): Promise<number | undefined> {
  // Equations run nothing; programs in virtual time need namespaces of their own.
  if (!clocks.includes("wire") && !clocks.includes("sim")) return undefined;
  await askForTrust(context, file, scenarios, choice);
  const needsRights = clocks.includes("wire") || scenarios.some(({ programs }) => programs.length > 0);
  return needsRights ? context.elevate(handed) : undefined;
}

/**
 * Returns undefined if the file is the user's, or the system's. A path that cannot be looked at is no file: a pipe of the user's,
 * or an error that is told later.
 */
function whyNotOurs(file: string): string | undefined {
  let found: { uid: number; mode: number; isFile(): boolean };
  try {
    found = statSync(file);
  } catch {
    return undefined;
  }
  // With sudo the files are those of the user who has called it.
  const ours = [kRoot, process.geteuid?.(), Number(process.env.SUDO_UID ?? kRoot)];
  if (!ours.includes(found.uid)) return `${printable(file)} belongs to another user (${found.uid})`;
  if (found.isFile() && (found.mode & kForEverybody) !== 0) return `${printable(file)} can be written by everybody`;
  return undefined;
}

async function agreed({ stdin, stderr }: CliContext): Promise<boolean> {
  if (stdin.isTTY !== true || stderr.isTTY !== true) return false;
  const question = createInterface({ input: stdin, output: stderr });
  try {
    return /^y(es)?$/i.test((await question.question("Run it? [y/N] ")).trim());
  } finally {
    question.close();
  }
}
