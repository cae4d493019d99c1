/** One program of a scenario on its host: started, listened to, ended. */
import { spawn } from "node:child_process";
import type { ProgramResult } from "../../result/program_result.js";
import type { Program } from "../../scenario/types.js";
import { kNicInterface } from "../lab/devices.js";
import { enterHost } from "../standing/enter.js";
import { difference, type InterfaceCounts, interfaceCounts, networkTable } from "./interface_counts.js";
import { ProgramOutput } from "./program_output.js";

/** Place where a program runs, and the facts that it needs. */
export interface ProgramPlace {
  /** Process 1 of the host. */
  pid: number;
  environment: Readonly<Record<string, string>>;
  /** Folder of the run's files. */
  folder: string;
  /** Meant ns since traffic began. */
  now(): number;
  /** Whether a program of librdmacm listens at the port of its NIC. */
  isListenedAt(port: number): boolean;
  /** Counters of the host's NIC, by name. */
  counters(): Record<string, number>;
}

interface Moment {
  at: number;
  interface: InterfaceCounts;
  counters: Record<string, number>;
}

/**
 * $1: a command line. Where the kernel shares CPUs among sessions (sched_autogroup), the lab's threads, who are in another one, get
 * most of what they want; else their priority says so.
 */
const kBegin = 'echo 10 2> /dev/null > /proc/self/autogroup; exec sh -c "$1"';
/** State of a listening socket in /proc/net/tcp. */
const kListening = "0A";

export class ProgramRun {
  #outputs: { stdout: ProgramOutput; stderr: ProgramOutput } | undefined;
  #started: Moment | undefined;
  #ended: Moment | undefined;
  #status: number | undefined;
  #signal: string | undefined;
  #told = false;
  #ready = false;
  #failure: string | undefined;
  /** Reason, if it has ended by itself and not well. */
  #bad: string | undefined;

  constructor(
    readonly program: Program,
    private readonly place: ProgramPlace,
  ) {}

  get started(): boolean {
    return this.#started !== undefined;
  }

  /** Whether it will not run any more. */
  get over(): boolean {
    return this.#ended !== undefined || (!this.started && this.#failure !== undefined);
  }

  /** Reason why it failed, so far. */
  get failure(): string | undefined {
    if (this.#failure !== undefined || this.#bad === undefined) return this.#failure;
    // Its last words may come after the news of its end.
    const said = this.#outputs?.stderr.lastLine ?? "";
    return said === "" ? this.#bad : `${this.#bad}: ${said}`;
  }

  /** Whether programs that wait for it may start now. */
  get ready(): boolean {
    const { listens } = this.program;
    if (this.#ready) return true;
    if (listens === undefined) this.#ready = this.#ended !== undefined && this.failure === undefined;
    else if (this.started && !this.over)
      this.#ready = listensAt(this.place.pid, listens) || this.place.isListenedAt(listens);
    return this.#ready;
  }

  start(): void {
    const { program, place } = this;
    const { folder, pid, environment } = place;
    this.#started = this.#moment();
    const file = (stream: string) => `programs/${program.id}.${stream}`;
    const [stdout, stderr] = [new ProgramOutput(folder, file("out")), new ProgramOutput(folder, file("err"))];
    this.#outputs = { stdout, stderr };
    const command = ["sh", "-c", kBegin, "sh", program.run];
    const [enter, ...args] = enterHost({ pid, userNamespace: false }, environment, command, process.cwd());
    // A session of its own keeps Ctrl-C away from it.
    const child = spawn(enter, args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
    stdout.listen(child.stdout);
    stderr.listen(child.stderr);
    child.on("error", ({ message }) => this.#end(undefined, undefined, `cannot be started: ${message}`));
    child.on("exit", (status, signal) => this.#end(status ?? undefined, signal ?? undefined));
  }

  /** Notes that it was not started, and will not be. */
  giveUp(why: string): void {
    this.#failure ??= `did not start: ${why}`;
  }

  /** Notes that it is about to be ended. @param why Failure that this is, where somebody waited for it. */
  told(why: string): void {
    if (this.over) return;
    if (!this.program.background) this.#failure ??= why;
    this.#told = true;
  }

  /** Stops keeping its output. */
  close(): void {
    this.#outputs?.stdout.close();
    this.#outputs?.stderr.close();
  }

  result(): ProgramResult {
    const { id: _, host, run: command } = this.program;
    const [started, ended] = [this.#started, this.#ended];
    const last = ended ?? (started && this.#moment());
    const { failure } = this;
    return {
      host,
      command,
      ...(started && { started_s: Math.max(0, started.at) / 1e9 }),
      ...(ended && { ended_s: Math.max(0, ended.at) / 1e9 }),
      ...(this.#status !== undefined && { status: this.#status }),
      ...(this.#signal !== undefined && { signal: this.#signal }),
      ...(failure !== undefined && { failure }),
      ...(this.#outputs && { stdout: this.#outputs.stdout.result(), stderr: this.#outputs.stderr.result() }),
      ...(started &&
        last && {
          interface: { ...difference(last.interface, started.interface) },
          counters: growth(last.counters, started.counters),
        }),
    };
  }

  #end(status: number | undefined, signal: NodeJS.Signals | undefined, failure?: string): void {
    if (this.#ended !== undefined) return;
    this.#status = status;
    this.#signal = signal;
    this.#ended = this.#moment();
    if (failure !== undefined) this.#failure = failure;
    if (this.#told || this.#failure !== undefined || status === 0) return;
    this.#bad = signal === undefined ? `ended with exit status ${status}` : `was ended by ${signal}`;
  }

  #moment(): Moment {
    const { pid, now, counters } = this.place;
    return { at: now(), interface: interfaceCounts(pid, kNicInterface), counters: counters() };
  }
}

/** Whether a process listens at the port of TCP, by IPv4 or IPv6. @param pid A process of the network namespace. */
function listensAt(pid: number, port: number): boolean {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return (["tcp", "tcp6"] as const).some((file) => {
    const [, ...lines] = networkTable(pid, file).split("\n");
    return lines.some((line) => {
      const [, local = "", , state] = line.trim().split(/\s+/);
      return state === kListening && local.endsWith(wanted);
    });
  });
}

function growth(now: Readonly<Record<string, number>>, before: Readonly<Record<string, number>>) {
  const grown = Object.entries(now).map(([name, value]) => [name, value - (before[name] ?? 0)] as const);
  return Object.fromEntries(grown.filter(([, by]) => by > 0));
}
