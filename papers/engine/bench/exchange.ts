/** One measurement between two hosts: a server, a client that it serves, and the CPUs in the middle half of the client's time. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { WeirError } from "../../../src/base/error.js";
import { THIS_COMMAND } from "../../../src/base/this_command.js";
import { writeWhole } from "../../../src/base/write_file.js";
import type { PerfRow } from "../../../src/verbs/perf/report.js";
import { type CpuUse, CpuWatch } from "./cpu.js";
import type { HostPair } from "./host_pair.js";
import { Program } from "./process.js";
import { type PerfRun, perfCommand, readPerf } from "./rdma.js";
import {
  IPERF_PORT,
  iperfClient,
  iperfServer,
  readIperf,
  readSockperf,
  SOCKPERF_PORT,
  sockperfClient,
  sockperfServer,
} from "./tcp.js";

/** Time for the start and the end of programs on a host that is busy with them, s. */
const kGrace = 30;

export interface ExchangeOptions {
  /** Folder for the programs' output. */
  directory: string;
  signal: AbortSignal;
  /** Command of this installation. */
  weir?: readonly string[];
}

interface Ends {
  /** Name of both programs. */
  name: string;
  /** Host b serves host a. */
  server: readonly string[];
  client: readonly string[];
  /** Waits until the server serves. */
  ready: (server: Program) => Promise<void>;
  /** Waits until the client's time begins; default: when it is started. */
  begun?: (client: Program) => Promise<void>;
  seconds: number;
}

/** @throws WeirError when an end fails, and AbortError. Both have ended when it returns. */
async function exchange(
  pair: HostPair,
  { name, server, client, ready, begun, seconds }: Ends,
  signal: AbortSignal,
): Promise<{ text: string; cpu: CpuUse }> {
  const options = { name, limit: seconds + kGrace, signal };
  const serving = new Program(pair.command("b", server), options);
  try {
    await ready(serving);
    const asking = new Program(pair.command("a", client), options);
    try {
      await begun?.(asking);
      await sleep(seconds * 250, undefined, { signal });
      const watch = new CpuWatch(asking.pid, serving.pid);
      await sleep(seconds * 500, undefined, { signal });
      const cpu = watch.use();
      const early = asking.ended;
      const text = await asking.output;
      if (early) throw new WeirError(`${name} ended while its CPU was measured: this host is too busy`);
      return { text, cpu };
    } finally {
      await asking.stop();
    }
  } finally {
    await serving.stop();
  }
}

/** Host a to host b: bit/s of payload. */
export async function tcpThroughput(
  pair: HostPair,
  { size, seconds, streams }: { size: number; seconds: number; streams: number },
  { directory, signal }: ExchangeOptions,
): Promise<{ bps: number; cpu: CpuUse }> {
  const address = pair.kernelAddress("b");
  const ends: Ends = {
    name: "iperf3",
    server: iperfServer(address),
    client: iperfClient(address, size, seconds, streams),
    ready: (server) => server.listening(IPERF_PORT),
    seconds,
  };
  const { text, cpu } = await exchange(pair, ends, signal);
  writeWhole(join(directory, `tcp-throughput-${size}.json`), text);
  return { bps: readIperf(text), cpu };
}

/** us, one way. */
export async function tcpLatency(
  pair: HostPair,
  { size, seconds }: { size: number; seconds: number },
  { directory, signal }: ExchangeOptions,
): Promise<{ average: number; median: number; cpu: CpuUse }> {
  const address = pair.kernelAddress("b");
  const ends: Ends = {
    name: "sockperf",
    server: sockperfServer(address),
    client: sockperfClient(address, size, seconds),
    ready: (server) => server.listening(SOCKPERF_PORT),
    seconds,
  };
  const { text, cpu } = await exchange(pair, ends, signal);
  writeWhole(join(directory, `tcp-latency-${size}.txt`), text);
  return { ...readSockperf(text), cpu };
}

/** Host a is the client. */
export async function rdma(
  pair: HostPair,
  run: PerfRun,
  { directory, signal, weir = THIS_COMMAND }: ExchangeOptions,
): Promise<{ row: PerfRow; cpu: CpuUse }> {
  const file = join(directory, `${run.test}-${run.size}${run.depth === undefined ? "" : `-depth-${run.depth}`}.json`);
  const ends: Ends = {
    name: "weir perf",
    server: perfCommand(pair, "b", run, undefined, weir),
    client: perfCommand(pair, "a", run, file, weir),
    ready: (server) => server.spoken(),
    begun: (client) => client.spoken(),
    seconds: run.seconds,
  };
  const { cpu } = await exchange(pair, ends, signal);
  return { row: readPerf(readFileSync(file, "utf8")), cpu };
}
