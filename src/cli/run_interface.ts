/** The NIC of `weir run --interface`: a daemon without a file, for as long as one program runs. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { basename, dirname } from "node:path";
import { createInterface } from "node:readline";
import { WeirError } from "../base/error.js";
import { forPeople } from "../daemon/log_line.js";
import { harmless } from "../result/report/terminal.js";
import type { CliContext } from "./context.js";

export interface InterfaceNic {
  name: string;
  /** Folder of its sockets. */
  folder: string;
  /** Ends it; resolves when the interface is free again. */
  stop(): Promise<void>;
}

export interface InterfaceOptions {
  interface: string;
  address?: string[] | undefined;
  rate?: string | undefined;
  set?: string[] | undefined;
}

/** Levels of log lines that the user of a program should see. */
const kTold = ["warn", "error", "fatal"];
/** Time that a NIC has to send what is under way, ms. */
const kDrainMs = 10_000;

/**
 * Starts the NIC; its exit status if it does not start, having said why.
 * @param signal Ends the start early.
 */
export async function startNic(
  context: CliContext,
  options: InterfaceOptions,
  signal: AbortSignal,
): Promise<InterfaceNic | number> {
  const child = spawn("setpriv", ["--pdeathsig", "TERM", process.execPath, ...process.execArgv, ...nicWords(options)], {
    stdio: ["ignore", "ignore", "pipe"],
    // Ctrl-C is the program's: the NIC goes on until that has ended.
    detached: true,
  });
  const ended = endOf(child);
  // A second SIGTERM would let it leave its sockets behind.
  let isTold = false;
  const end = () => {
    if (!isTold) child.kill("SIGTERM");
    isTold = true;
  };
  signal.addEventListener("abort", end);
  const socket = await Promise.race([startedAt(child, context), ended]);
  signal.removeEventListener("abort", end);
  if (typeof socket === "number") return socket || 1;
  return {
    name: basename(socket, ".verbs"),
    folder: dirname(socket),
    stop: async () => {
      end();
      const late = setTimeout(() => child.kill("SIGKILL"), kDrainMs);
      await ended;
      clearTimeout(late);
    },
  };
}

/** Words of the command that runs it. */
function nicWords({ interface: netdev, address = [], rate, set = [] }: InterfaceOptions): string[] {
  return [
    process.argv[1] as string,
    "nic",
    netdev,
    "--programs",
    // It is the only program, with what the launcher may do: it needs no daemon to send for it.
    ...["--set", 'programs={"direct":true}'],
    ...address.flatMap((one) => ["--address", one]),
    ...(rate === undefined ? [] : ["--rate", rate]),
    ...set.flatMap((one) => ["--set", one]),
  ];
}

async function endOf(child: ChildProcess): Promise<number> {
  try {
    const [status] = (await once(child, "exit")) as [number | null];
    return status ?? 1;
  } catch (error) {
    throw new WeirError(`cannot run setpriv: ${(error as Error).message}`, { hint: "apt install util-linux" });
  }
}

/** Passes on what it says of trouble; resolves to its socket for programs when it has started. */
function startedAt(child: ChildProcess, { stderr }: CliContext): Promise<string> {
  return new Promise((resolve) => {
    createInterface({ input: child.stderr as NodeJS.ReadableStream }).on("line", (line) => {
      const told = logLine(line);
      if (told?.msg === "started") resolve(String(told.programs));
      if (told === undefined) stderr.write(`${harmless(line)}\n`);
      else if (kTold.includes(String(told.level))) stderr.write(`weir run: ${harmless(forPeople(line))}`);
    });
  });
}

/** Fields of a line of the log; undefined: it is for people. */
function logLine(line: string): Record<string, unknown> | undefined {
  try {
    return line.startsWith("{") ? (JSON.parse(line) as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
