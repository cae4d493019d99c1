/** `weir lab ps`, `exec`, `logs`, `down`: verbs for labs that stay. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { WeirError } from "../base/error.js";
import { formatTime } from "../base/units.js";
import { enterHost, hostEnvironment } from "../clocks/standing/enter.js";
import { signalEntered, throughEntrance } from "../clocks/standing/entrance.js";
import { chooseHost, chooseLab, standingLabs, takeDown } from "../clocks/standing/labs.js";
import { kLogFile, labAround } from "../clocks/standing/place.js";
import { forPeople } from "../daemon/log_line.js";
import type { StandingReport } from "../device/protocol.js";
import { controlDirectory } from "../host/control_directory.js";
import { duration, printable } from "../result/report/format.js";
import { harmless } from "../result/report/terminal.js";
import { type CliContext, kExit, print, warn } from "./context.js";
import { hostTable, scaleText } from "./lab_hosts.js";
import { execute, requireProgram, warnOfDeaf } from "./run.js";
import { untilSignal } from "./stop_signals.js";

const kExecHelp = `
The program has the host's interfaces, addresses, name and processes, your files, terminal and environment, and finds the host's NIC by
libibverbs, as by weir run. Its exit status is that of weir. It ends by itself, or with the lab.

Examples:
  weir lab exec h1 -- ib_write_bw h2
  weir lab exec incast.h1 -- iperf3 -s            where several labs have an h1
  weir lab exec h1                                a shell
  weir lab exec h1 -- weir lab exec h2 -- hostname    from one host on another
`;
const kFollowMs = 200;

export function addStanding(lab: Command, context: CliContext, done: (status: number) => void): void {
  lab
    .command("ps")
    .description("labs that are up, their hosts, and what runs there")
    .argument("[name]", "this lab only")
    .option("--json", "as JSON: a list of labs")
    .action(async (name: string | undefined, options: { json?: boolean }) => done(await ps(context, name, options)));
  lab
    .command("exec")
    .description("run a program on a host of a lab that is up")
    .usage("[options] <host> [--] [program] [arguments]")
    .argument("<host>", "a host, or LAB.HOST")
    .argument("[program]", "program to run (default: your shell)")
    .argument("[arguments...]", "its arguments")
    .option("--rsh", "as rsh does: all of it is a command line for a shell, as mpirun wants it")
    .passThroughOptions()
    .addHelpText("after", kExecHelp)
    .action(async (host: string, program: string | undefined, args: string[], { rsh }: { rsh?: boolean }) => {
      // Commander leaves two dashes behind an argument where they are.
      const [first = process.env.SHELL ?? "sh", ...rest] = program === "--" ? args : [program, ...args];
      const words: [string, ...string[]] = [first, ...(rest as string[])];
      done(await exec(context, host, rsh ? ["sh", "-c", words.join(" ")] : words));
    });
  lab
    .command("logs")
    .description("what a lab that is up has to say")
    .argument("[name]", "which, where there are several")
    .option("-f, --follow", "go on, until Ctrl-C or its end")
    .option("--json", "lines as they are: one JSON object each")
    .action(async (name: string | undefined, options: { follow?: boolean; json?: boolean }) =>
      done(await logs(context, name, options)),
    );
  lab
    .command("down")
    .description("end a lab that is up, and all that runs there")
    .argument("[name]", "which, where there are several")
    .option("--all", "all of them")
    .action(async (name: string | undefined, options: { all?: boolean }) => done(await down(context, name, options)));
}

async function ps(context: CliContext, name: string | undefined, { json }: { json?: boolean }): Promise<number> {
  const all = await standingLabs(controlDirectory());
  const labs = name === undefined ? all : [chooseLab(all, name)];
  print(context, json, labs, (color) =>
    labs.length === 0 ? "no lab is up" : labs.map((lab) => describe(lab, color)).join("\n\n"),
  );
  return kExit.ok;
}

function describe(lab: StandingReport, color: boolean): string {
  const { name, pid, uptime_s, file } = lab;
  const of = file === "" ? "" : `, of ${printable(file)}`;
  const head = `${printable(name)}: up for ${duration(uptime_s)}, pid ${pid}${of}`;
  const { longest_gap_us, lost_frames } = lab.fidelity;
  const lateness = `lately this machine kept it from running for ${formatTime(1000 * longest_gap_us, 3)} at most; frames lost to that: ${lost_frames}`;
  return [head, scaleText(lab), lateness, hostTable(lab, color)].join("\n");
}

async function exec(context: CliContext, wanted: string, words: [string, ...string[]]): Promise<number> {
  const directory = controlDirectory();
  // On a host of a lab, hosts are those of that lab.
  const around = labAround(directory);
  const labs = await standingLabs(around?.directory ?? directory);
  const { lab, host } = chooseHost(around === undefined ? labs : [chooseLab(labs, around.name)], wanted);
  const [program] = words;
  requireProgram(program);
  const environment = hostEnvironment(lab.folder);
  if ("LD_PRELOAD" in environment) warnOfDeaf(context, "weir lab exec", program);
  if (around !== undefined) {
    const all = { ...(process.env as Record<string, string>), ...environment };
    const request = { host: host.name, command: words, environment: all, folder: process.cwd() };
    return throughEntrance(lab.folder, request, context.signals);
  }
  const place = { pid: host.pid, userNamespace: lab.user_namespace };
  const [command, ...rest] = enterHost(place, environment, words, process.cwd());
  return execute(context, command, rest, {}, signalEntered);
}

async function logs(
  context: CliContext,
  name: string | undefined,
  { follow, json }: { follow?: boolean; json?: boolean },
): Promise<number> {
  const lab = chooseLab(await standingLabs(controlDirectory()), name);
  const file = join(lab.folder, kLogFile);
  if (!existsSync(file)) {
    throw new WeirError(`${lab.name} runs in the foreground`, { hint: "its log is where it was started" });
  }
  let told = 0;
  const tell = (text: string) => {
    const end = text.lastIndexOf("\n") + 1;
    for (const line of text.slice(told, end).split("\n")) {
      if (line !== "") context.stdout.write(json ? `${line}\n` : harmless(lineForPeople(line)));
    }
    told = Math.max(told, end);
  };
  tell(readFileSync(file, "utf8"));
  if (!follow) return kExit.ok;
  return untilSignal(context, async (signal) => {
    while (!signal.aborted && existsSync(file)) {
      tell(readFileSync(file, "utf8"));
      await sleep(kFollowMs);
    }
    return kExit.ok;
  });
}

/** Lines that are not of the log itself, such as the last words of a process, stay as they are. */
function lineForPeople(line: string): string {
  return line.startsWith("{") ? forPeople(line) : `${line}\n`;
}

async function down(context: CliContext, name: string | undefined, { all }: { all?: boolean }): Promise<number> {
  const directory = controlDirectory();
  const up = await standingLabs(directory);
  const chosen = all ? up : chosenToEnd(context, up, name);
  for (const lab of chosen) {
    await takeDown(directory, lab);
    context.stdout.write(`${printable(lab.name)} is down\n`);
  }
  return kExit.ok;
}

/** A lab that is not up is down already. */
function chosenToEnd(context: CliContext, up: readonly StandingReport[], name: string | undefined): StandingReport[] {
  const there = name === undefined ? up.length > 0 : up.some((lab) => lab.name === name);
  if (there) return [chooseLab(up, name)];
  const others = up.length > 0 ? `; up: ${up.map((lab) => lab.name).join(", ")}` : "";
  warn(context, name === undefined ? "no lab is up" : `no lab called ${name} is up${others}`);
  return [];
}
