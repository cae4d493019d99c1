/**
 * Debian's perftest on two `weir nic` daemons, by these and on paths of its own, beside `weir perf`, which is a NIC and its only user in
 * one process, and beside iperf3 on the kernel's TCP. Each has a veth pair of its own, made alike; every round has all of them in turn.
 *
 * CPU is what the processes of both ends had, the daemons' and the kernel's work on their behalf included, without `weir perf`'s start.
 */
import { readFileSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { median } from "simple-statistics";
import { prepareLaunch } from "../../src/daemon/programs/launch.js";
import type { LabNetwork } from "../../src/host/veth.js";
import { BenchDaemon, freePort } from "../daemon.js";
import type { BenchOptions, Metric, Row } from "../row.js";
import { addressOf, type End, type Ends, listensIn, pair, Timed, tcpStream, weirPerf } from "./ends.js";

export const name = "programs";
export const title = "Programs on weir nic, beside weir perf and TCP";

/** Faster than what software does on any of these. */
const kRate = "100Gbps";
const kTcp = "64 KiB writes of a socket";
/** Of the interfaces. */
const kMtu = 1500;

interface Test {
  name: string;
  /** perftest's program; `weir perf` calls it almost so. */
  program: "ib_write_bw" | "ib_read_bw" | "ib_send_bw" | "ib_write_lat" | "ib_send_lat";
  size: number;
  iterations: number;
  queuePairs?: number;
}

const kTests: Test[] = [
  { name: "write 64 KiB", program: "ib_write_bw", size: 65_536, iterations: 20_000 },
  { name: "read 64 KiB", program: "ib_read_bw", size: 65_536, iterations: 20_000 },
  { name: "write 1 MiB", program: "ib_write_bw", size: 1 << 20, iterations: 2000 },
  { name: "read 1 MiB", program: "ib_read_bw", size: 1 << 20, iterations: 2000 },
  { name: "write 64 B", program: "ib_write_bw", size: 64, iterations: 1_000_000 },
  { name: "send 64 B", program: "ib_send_bw", size: 64, iterations: 300_000 },
  { name: "send 64 B, 8 queue pairs", program: "ib_send_bw", size: 64, iterations: 40_000, queuePairs: 8 },
  { name: "send 2 B, latency", program: "ib_send_lat", size: 2, iterations: 10_000 },
  { name: "write 2 B, latency", program: "ib_write_lat", size: 2, iterations: 10_000 },
];

interface Sample {
  /** Of payload, Gb/s. */
  rate?: number;
  /** Million a second. */
  messages?: number;
  /** One way, us. */
  p50?: number;
  p99?: number;
  /** s for each Gb of payload. */
  cpu?: number;
}

type Subject = (test: Test) => Promise<Sample>;

export async function run(options: BenchOptions): Promise<Row[]> {
  const rounds = options.quick ? 1 : 5;
  const tests = kTests
    .filter((test) => options.wants(test.name))
    .map((test) => (options.quick ? { ...test, iterations: Math.ceil(test.iterations / 8) } : test));
  const samples = new Map<string, Sample[]>();
  const take = async (key: string, sample: Promise<Sample>) => {
    samples.set(key, [...(samples.get(key) ?? []), await sample]);
  };
  const ends: Ends = [];
  try {
    const programs = await onDaemons(ends, true);
    const direct = await onDaemons(ends, { direct: true });
    const perf = onPerf(await pair(ends, kMtu));
    const tcp = await pair(ends, kMtu);
    for (let round = 1; round <= rounds; round++) {
      process.stderr.write(`  round ${round} of ${rounds}\n`);
      for (const test of tests) {
        await take(`${test.name}, programs`, programs(test));
        await take(`${test.name}, programs direct`, direct(test));
        await take(`${test.name}, weir perf`, perf(test));
      }
      if (options.wants(kTcp)) await take(kTcp, transfer(tcp, options.quick ? 1 : 3));
    }
  } finally {
    for (const end of ends.reverse()) await end();
  }
  return [...samples].map(([key, taken]) =>
    rowOf(key, taken, samples.get(key.replace(/, programs( direct)?$/, ", weir perf"))),
  );
}

function rowOf(name: string, taken: readonly Sample[], peer: readonly Sample[] | undefined): Row {
  const metrics: Record<string, Metric> = {};
  const add = (metric: string, unit: string, field: keyof Sample, better?: "less" | "more") => {
    const values = taken.flatMap((one) => one[field] ?? []);
    if (values.length === 0) return;
    const value = median(values);
    metrics[metric] = { value, unit, min: Math.min(...values), max: Math.max(...values), ...(better && { better }) };
    const others = peer?.flatMap((one) => one[field] ?? []) ?? [];
    if (better === undefined || peer === taken || others.length === 0) return;
    metrics["to weir perf"] = { value: value / median(others), unit: "", better };
  };
  add("rate", "Gb/s", "rate", "more");
  add("messages", "Mpps", "messages");
  add("p50", "us", "p50", "less");
  add("p99", "us", "p99");
  add("CPU", "s/Gb", "cpu");
  return { name, metrics };
}

/** The client on the NIC of a, the server on that of b. */
async function onDaemons(ends: Ends, programs: true | { direct: true }): Promise<Subject> {
  const network = await pair(ends, kMtu);
  const start = async (end: End) => {
    const { path } = network.namespace(end);
    const link = { interface: "weir0", namespace: path, address: addressOf(end), rate: kRate };
    const daemon = await BenchDaemon.start("nic", { name: end, ...link, programs, metrics: false });
    ends.push(() => daemon.stop());
    const { environment, files } = await prepareLaunch(["control"], { folder: dirname(daemon.socket) });
    ends.push(() => rmSync(files, { recursive: true, force: true }));
    return { daemon, environment };
  };
  const [client, server] = [await start("a"), await start("b")];
  return async (test) => {
    const { program, size, iterations, queuePairs = 1 } = test;
    const port = await freePort();
    const counts = [
      "-s",
      String(size),
      "-n",
      String(iterations),
      ...(queuePairs > 1 ? ["-q", String(queuePairs)] : []),
    ];
    const command = [program, "-x", "0", "--report_gbits", ...counts, "-p", String(port)];
    const before = daemonSeconds(client.daemon) + daemonSeconds(server.daemon);
    const serving = new Timed(command, server.environment);
    await serving.until(() => listens(port));
    const asking = new Timed([...command, "127.0.0.1"], client.environment);
    const outputs = [await asking.ended, await serving.ended];
    const daemons = daemonSeconds(client.daemon) + daemonSeconds(server.daemon) - before;
    const cpu = outputs.reduce((sum, { seconds }) => sum + seconds, daemons);
    return sampleOf(test, outputs[0]?.text ?? "", cpu);
  };
}

function daemonSeconds(daemon: BenchDaemon): number {
  const { workers, rest } = daemon.cpu();
  return workers + rest;
}

/** The line of perftest's table. */
function sampleOf({ program, size, iterations, queuePairs = 1 }: Test, text: string, cpu: number): Sample {
  const line = text.split("\n").find((one) => new RegExp(`^\\s*${size}\\s+\\d+\\s`).test(one));
  const numbers = line?.trim().split(/\s+/).map(Number);
  if (numbers === undefined) throw new Error(`${program} printed no result: ${text}`);
  const [, , , second = 0, third = 0, , , p99 = 0] = numbers;
  if (program.endsWith("_lat")) return { p50: third, p99 };
  return { rate: second, messages: third, cpu: cpu / ((size * iterations * queuePairs * 8) / 1e9) };
}

/** Of this network namespace; perftest says that it waits only when it has ended, where its output is no terminal. */
const listens = (port: number) =>
  ["tcp", "tcp6"].some((file) => listensIn(readFileSync(`/proc/net/${file}`, "utf8"), port));

function onPerf(network: LabNetwork): Subject {
  return async ({ program, size, iterations, queuePairs = 1 }) => {
    const test = program.slice("ib_".length).replace("_", "-");
    const pairs = queuePairs > 1 ? ["-q", String(queuePairs)] : [];
    const { client, server } = await weirPerf(network, test, "-s", String(size), "-n", String(iterations), ...pairs);
    const { typical_latency: p50, p99_latency: p99 } = client;
    if (p50 !== undefined && p99 !== undefined) return { p50: p50 / 1000, p99: p99 / 1000 };
    const rate = program === "ib_read_bw" ? client.data_rx_rate : client.data_tx_rate;
    const cpu = (client.cpu_seconds + server.cpu_seconds) / ((size * iterations * queuePairs * 8) / 1e9);
    return { rate: rate ?? 0, messages: client.message_rate ?? 0, cpu };
  };
}

async function transfer(network: LabNetwork, seconds: number): Promise<Sample> {
  const { rate, client, server } = await tcpStream(network, seconds);
  return { rate, cpu: (client + server) / rate };
}
