/** The benchmark's own traffic: weir_bench as a process of its own (native/bench/traffic.h says what each command does). */
import { type ChildProcessByStdio, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { promisify } from "node:util";
import { kBenchProgram } from "../native.js";

/** An interface, and the Ethernet address of the host that has it. */
export interface Station {
  /** Path of its network namespace. */
  namespace: string;
  interface: string;
  mac: string;
}

/** How frames come to be: sk_buffs by sendmmsg, or live XDP frames, which cost the sender's CPU next to nothing. */
export type Source = "packet" | "xdp";

export interface Sending {
  source: Source;
  from: Station;
  to: Station;
  /** Bytes of a frame, without FCS. */
  size: number;
  seconds: number;
  /** Frames/s; 0: as fast as it goes. */
  rate: number;
  cpu: number;
}

/** What was sent. */
export interface Sent {
  frames: number;
  seconds: number;
}

const run = promisify(execFile);
/** Beyond the time that a command is to take. */
const kGraceMs = 20_000;

/** A program of ours that runs, and what comes of it. */
export interface Running<Result> {
  pid: number;
  result: Promise<Result>;
}

export function startSending({ source, from, to, size, seconds, rate, cpu }: Sending): Running<Sent> {
  const place = [from.namespace, from.interface, String(cpu), from.mac, to.mac];
  return start(["send", source, ...place, ...[size, seconds, rate].map(String)], seconds, ([frames, took]) => ({
    frames: frames as number,
    seconds: took as number,
  }));
}

export function send(sending: Sending): Promise<Sent> {
  return startSending(sending).result;
}

function start<Result>(args: string[], seconds: number, read: (numbers: number[]) => Result): Running<Result> {
  const running = run(kBenchProgram, args, { timeout: seconds * 1000 + kGraceMs });
  const result = running.then(({ stdout }) => read(stdout.trim().split(" ").map(Number)));
  return { pid: running.child.pid ?? -1, result };
}

export interface Latency {
  sent: number;
  lost: number;
  /** One way, us. */
  p50: number;
  p90: number;
  p99: number;
  p999: number;
  max: number;
}

/** One way from one station to another, by one clock. */
export function startLatency(from: Station, to: Station, seconds: number, rate: number, cpu: number): Running<Latency> {
  const ends = [from.namespace, from.interface, to.namespace, to.interface, String(cpu), from.mac, to.mac];
  return startStopWatch(["latency", ...ends], seconds, rate);
}

/** From a marked packet of one station to the CNP of the NIC at another, there and back. */
export function startCnpLatency(
  from: Station,
  to: Station,
  seconds: number,
  rate: number,
  cpu: number,
): Running<Latency> {
  return startStopWatch(["cnp", from.namespace, from.interface, String(cpu), from.mac, to.mac], seconds, rate);
}

function startStopWatch(command: readonly string[], seconds: number, rate: number): Running<Latency> {
  return start([...command, String(seconds), String(rate)], seconds, (numbers) => {
    const [sent, lost, p50, p90, p99, p999, max] = numbers as [number, number, number, number, number, number, number];
    return { sent, lost, p50, p90, p99, p999, max };
  });
}

/** Drops and counts all that arrives at a station, until it is closed. */
export class Counter {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: Interface;
  /** Fails when the program ends. */
  readonly #ended: Promise<never>;

  private constructor(child: ChildProcessByStdio<Writable, Readable, null>) {
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout });
    this.#ended = once(child, "exit").then(() => {
      throw new Error("the counter has ended");
    });
    this.#ended.catch(() => {}); // at close() that is as it should be
  }

  /** @param sink Where they end: as sk_buffs behind the driver, or in it, by an XDP program. */
  static async start({ namespace, interface: name }: Station, sink: Source = "packet"): Promise<Counter> {
    return await Counter.#spawn(["count", namespace, name, sink]);
  }

  /** One that also keeps when RoCEv2 packets came: readArrivals() of `file` once it is closed. */
  static async record({ namespace, interface: name }: Station, file: string, record: Recorded): Promise<Counter> {
    const { firstQpn, queuePairs, stamps } = record;
    return await Counter.#spawn(["arrivals", namespace, name, ...[firstQpn, queuePairs, stamps].map(String), file]);
  }

  static async #spawn(command: readonly string[]): Promise<Counter> {
    const counter = new Counter(spawn(kBenchProgram, command, { stdio: ["pipe", "pipe", "inherit"] }));
    await counter.read();
    return counter;
  }

  /** How many so far, and when that was, ns. */
  async read(): Promise<{ count: number; at: number }> {
    const line = once(this.#lines, "line") as Promise<[string]>;
    this.#child.stdin.write("\n");
    const [text] = await Promise.race([line, this.#ended]);
    const [count, at] = text.split(" ").map(Number) as [number, number];
    return { count, at };
  }

  async close(): Promise<void> {
    this.#child.stdin.end();
    await this.#ended.catch(() => {});
  }
}

/** What a recording counter keeps. */
export interface Recorded {
  firstQpn: number;
  /** From the first on, which a summary is kept of. */
  queuePairs: number;
  /** How many times of packets are kept. */
  stamps: number;
}

/** Of one queue pair; times are CLOCK_MONOTONIC, ns. */
export interface QueuePairArrivals {
  first: number;
  last: number;
  packets: number;
  firstPsn: number;
  lastPsn: number;
}

export interface Arrivals {
  queuePairs: QueuePairArrivals[];
  /** Of all packets in their order. */
  stamps: Float64Array;
}

export function readArrivals(file: string, { queuePairs }: Recorded): Arrivals {
  const words = Float64Array.from(new BigUint64Array(new Uint8Array(readFileSync(file)).buffer), Number);
  const kWords = 5;
  return {
    queuePairs: Array.from({ length: queuePairs }, (_, i) => {
      const own = [...words.subarray(kWords * i, kWords * (i + 1))] as [number, number, number, number, number];
      const [first, last, packets, firstPsn, lastPsn] = own;
      return { first, last, packets, firstPsn, lastPsn };
    }),
    stamps: words.subarray(kWords * queuePairs),
  };
}
