/** `weir run`: lets unmodified programs use a NIC of this host by libibverbs. */
import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { constants } from "node:os";
import { basename, dirname } from "node:path";
import { Option } from "commander";
import { WeirError } from "../base/error.js";
import { deafness, programFile } from "../daemon/programs/executable.js";
import { prepareLaunch } from "../daemon/programs/launch.js";
import { type AddVerb, type CliContext, collect, kExit, UsageError } from "./context.js";
import { type InterfaceOptions, startNic } from "./run_interface.js";
import { socketOption } from "./socket_option.js";
import { StopSignals } from "./stop_signals.js";

interface RunOptions extends Partial<InterfaceOptions> {
  nic?: string[];
  socket?: string;
  env?: boolean;
}

const kExamples = `
Examples:
  weir run --interface eth1 -- ib_write_bw       a NIC on eth1 while the program runs: no daemon, no file
  weir run -- ibv_devinfo -v
  weir run --nic roce0 -- ib_write_bw
  eval "$(weir run --env)"                       the same for all that this shell starts

Without --interface the NICs are those of daemons: weir nic eth1 --programs, or with \`programs: true\` in their file. A NIC of
--interface has the kernel's addresses, or those of --address; weir show, top and metrics of it are as of any other.
`;
const kSignalBase = 128;

export const addRun: AddVerb = (parent, context, done) => {
  parent
    .command("run")
    .description("run a program that uses a NIC of this host by libibverbs")
    .usage("[options] -- <program> [arguments]")
    .argument("[program]", "program to run")
    .argument("[arguments...]", "its arguments")
    .option("--nic <name...>", "only these NICs; default: all that serve programs")
    .addOption(socketOption().conflicts("nic"))
    .addOption(
      new Option("--interface <name>", "a NIC of its own on this interface").conflicts(["nic", "socket", "env"]),
    )
    .option("--address <ip>", "with --interface: of the NIC; twice: IPv4 and IPv6 (default: the interface's)", collect)
    .option("--rate <rate>", "with --interface: line rate (default: 100Gbps, as much as this host manages)")
    .option("--set <path=value>", "with --interface: override a field of nic.yaml, repeatable", collect)
    .option("--env", "print what a shell has to set, and run nothing")
    .passThroughOptions()
    .addHelpText("after", kExamples)
    .action(async (program: string | undefined, args: string[], options: RunOptions) =>
      done(await run(context, program, args, options)),
    );
};

async function run(
  context: CliContext,
  program: string | undefined,
  args: readonly string[],
  { nic = [], socket, env = false, interface: netdev, ...ofNic }: RunOptions,
): Promise<number> {
  if (env !== (program === undefined)) {
    throw env
      ? new UsageError("--env runs nothing", { hint: "leave the program out" })
      : new UsageError("no program to run", {
          hint: "weir run -- ibv_devices; a scenario: weir lab run FILE, or weir sim run FILE",
        });
  }
  if (program !== undefined && /\.(ya?ml|json)$/.test(program)) {
    throw new UsageError(`${program} is no program`, { hint: `weir lab run ${program}, or weir sim run ${program}` });
  }
  if (netdev === undefined) {
    for (const [option, value] of Object.entries(ofNic)) {
      if (value !== undefined) throw new UsageError(`--${option}: not without --interface`);
    }
  }
  if (program === undefined) {
    const { environment } = await prepareLaunch(chosenNics(nic, socket), { lasting: true, ...folderOf(socket) });
    for (const [name, value] of Object.entries(environment)) context.stdout.write(`export ${name}=${quoted(value)}\n`);
    return kExit.ok;
  }
  requireProgram(program);
  warnOfDeaf(context, "weir run", program);
  const command = [program, ...args];
  if (netdev === undefined) return onNics(context, command, chosenNics(nic, socket), folderOf(socket));
  const stop = new StopSignals(context, true);
  try {
    const started = await startNic(context, { interface: netdev, ...ofNic }, stop.signal);
    if (typeof started === "number") return stop.status ?? started;
    try {
      return stop.status ?? (await onNics(context, command, [started.name], started, {}, stop));
    } finally {
      await started.stop();
    }
  } finally {
    stop.release();
  }
}

export const chosenNics = (nics: readonly string[], socket: string | undefined) =>
  socket === undefined ? nics : [basename(socket, ".sock")];
export const folderOf = (socket: string | undefined) => (socket === undefined ? {} : { folder: dirname(socket) });

/**
 * Runs a command on NICs of daemons. Returns its exit status.
 * @param environment Variables for it, besides.
 * @param stop Signals until it runs, which are the program's then; released here.
 */
export async function onNics(
  context: CliContext,
  command: readonly string[],
  nics: readonly string[],
  { folder }: { folder?: string },
  environment: NodeJS.ProcessEnv = {},
  stop = new StopSignals(context, true),
): Promise<number> {
  let files: string | undefined;
  try {
    const launch = await prepareLaunch(nics, folder === undefined ? {} : { folder });
    files = launch.files;
    if (stop.status !== undefined) return stop.status;
    const [launcher = "", ...words] = [...launch.before("weir run"), ...command];
    const ended = execute(context, launcher, words, { LD_PRELOAD: undefined, ...environment });
    stop.release();
    return await ended;
  } finally {
    stop.release();
    if (files !== undefined) rmSync(files, { recursive: true, force: true });
  }
}

/** @throws WeirError when a shell would not find the program. */
export function requireProgram(program: string): void {
  if (programFile(program) !== undefined) return;
  throw new WeirError(`cannot run ${program}: there is no such program`, { hint: "is it installed, and in $PATH?" });
}

/** Warns of a program that does not take the variables by which it is given a NIC. */
export function warnOfDeaf({ stderr }: Pick<CliContext, "stderr">, verb: string, program: string): void {
  const file = programFile(program);
  const deaf = file && deafness(file);
  if (deaf) stderr.write(`${verb}: warning: ${file} ${deaf}: it can use no NIC\n`);
}

/**
 * Returns its exit status, as a shell tells it. Signals from the terminal reach it by themselves.
 * @param onSignal Called for the program when this process gets SIGTERM.
 */
export function execute(
  { signals }: CliContext,
  program: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
  onSignal: (child: ChildProcess, signal: NodeJS.Signals) => void = (child, signal) => void child.kill(signal),
): Promise<number> {
  return new Promise((resolve, reject) => {
    const pass = (signal: NodeJS.Signals) => onSignal(child, signal);
    const wait = () => {};
    // Signals are heard before it is started: one in between would end this process alone.
    signals.on("SIGTERM", pass).on("SIGINT", wait);
    const child = spawn(program, args, { stdio: "inherit", env: { ...process.env, ...environment } });
    const end = () => void signals.off("SIGTERM", pass).off("SIGINT", wait);
    child.on("error", (error: NodeJS.ErrnoException) => {
      end();
      const hint = error.code === "ENOENT" ? "is it installed, and in $PATH?" : "may it be executed?";
      reject(new WeirError(`cannot run ${program}: ${error.code}`, { cause: error, hint }));
    });
    child.on("exit", (status, signal) => {
      end();
      resolve(signal === null ? (status ?? kExit.failure) : kSignalBase + constants.signals[signal]);
    });
  });
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
