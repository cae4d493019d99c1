/**
 * Debian's perftest on two `weir nic` daemons, beside `weir perf`, which is a NIC and its only user in one process, and beside iperf3 on
 * the kernel's TCP. Each has a veth pair of its own, made alike; every round has all of them in turn.
 *
 * CPU is what the processes of both ends had, the daemons' and the kernel's work on their behalf included, without `weir perf`'s start.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { median } from "simple-statistics";
import { LabNetwork } from "../../src/host/veth.js";
import type { PerfReport } from "../../src/perf/report.js";
import { prepareLaunch } from "../../src/programs/launch.js";
import { hostIp, hostMac } from "../../src/scenario/addresses.js";
import { BenchDaemon, freePort } from "../daemon.js";
import type { BenchOptions, Metric, Row } from "../row.js";

export const name = "programs";
export const title = "Programs on weir nic, beside weir perf and TCP";

const kMain = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
/** Faster than what software does on any of these. */
const kRate = "100Gbps";
const kTcp = "64 KiB writes of a socket";
const kLimitMs = 120_000;

interface Test {
  name: string;
  /** perftest's program; `weir perf` calls it almost so. */
  program: "ib_write_bw" | "ib_read_bw" | "ib_send_bw" | "ib_write_lat";
  size: number;
  iterations: number;
  queuePairs?: number;
}

const kTests: Test[] = [
  { name: "write 64 KiB", program: "ib_write_bw", size: 65_536, iterations: 20_000 },
  { name: "read 64 KiB", program: "ib_read_bw", size: 65_536, iterations: 20_000 },
  { name: "send 64 B", program: "ib_send_bw", size: 64, iterations: 300_000 },
  { name: "send 64 B, 8 queue pairs", program: "ib_send_bw", size: 64, iterations: 40_000, queuePairs: 8 },
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

type End = "a" | "b";
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
  const ends: (() => void | Promise<void>)[] = [];
  try {
    const programs = await onDaemons(ends);
    const perf = onPerf(await pair(ends));
    const tcp = await pair(ends);
    for (let round = 1; round <= rounds; round++) {
      process.stderr.write(`  round ${round} of ${rounds}\n`);
      for (const test of tests) {
        await take(`${test.name}, programs`, programs(test));
        await take(`${test.name}, weir perf`, perf(test));
      }
      if (options.wants(kTcp)) await take(kTcp, transfer(tcp, options.quick ? 1 : 3));
    }
  } finally {
    for (const end of ends.reverse()) await end();
  }
  return [...samples].map(([key, taken]) => rowOf(key, taken, samples.get(key.replace(/, programs$/, ", weir perf"))));
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

async function pair(ends: (() => void)[]): Promise<LabNetwork> {
  const nodes = (["a", "b"] as const).map((name) => ({ name, role: "host" as const }));
  const link = { from: "a", to: "b", mtu: 1500, fromMac: hostMac(0), toMac: hostMac(1) };
  const network = await LabNetwork.create(nodes, [link]);
  ends.push(() => network.close());
  for (const end of ["a", "b"] as const) {
    const lines = `link set dev weir0 arp on\naddress add ${addressOf(end)}/24 dev weir0\n`;
    await network.namespace(end).run("ip", ["-batch", "-"], lines);
  }
  return network;
}

const addressOf = (end: End) => hostIp(end === "a" ? 0 : 1).join(".");

/** The client on the NIC of a, the server on that of b. */
async function onDaemons(ends: (() => void | Promise<void>)[]): Promise<Subject> {
  const network = await pair(ends);
  const start = async (end: End) => {
    const { path } = network.namespace(end);
    const link = { interface: "weir0", namespace: path, address: addressOf(end), rate: kRate };
    const daemon = await BenchDaemon.start("nic", { name: end, ...link, programs: true, metrics: false });
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
  if (program === "ib_write_lat") return { p50: third, p99 };
  return { rate: second, messages: third, cpu: cpu / ((size * iterations * queuePairs * 8) / 1e9) };
}

/** A process, with what it printed and the time that it had on CPUs: a shell tells that at the end. */
class Timed {
  readonly ended: Promise<{ text: string; seconds: number }>;
  readonly #child: ChildProcess;
  #text = "";

  constructor(command: readonly string[], environment: Readonly<Record<string, string>>) {
    const script = `TIMEFORMAT="CPU %U %S"; time env "$0" "$@"`;
    const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
    this.#child = spawn("setpriv", ["--pdeathsig", "TERM", "bash", "-c", script, ...variables, ...command], {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: kLimitMs,
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#text += text;
      });
    }
    this.ended = once(this.#child, "close").then(([status]) => {
      const [, user, system] = /^CPU ([\d.]+) ([\d.]+)$/m.exec(this.#text) ?? [];
      if (status !== 0) throw new Error(`${command[0]} ended with ${status}: ${this.#text}`);
      return { text: this.#text, seconds: Number(user) + Number(system) };
    });
    this.ended.catch(() => {});
  }

  async until(ready: (text: string) => boolean): Promise<void> {
    for (const begin = performance.now(); !ready(this.#text); await sleep(20)) {
      if (this.#child.exitCode !== null) await this.ended;
      if (performance.now() - begin > kLimitMs) throw new Error(`it does not begin: ${this.#text}`);
    }
  }
}

/** Of this network namespace; perftest says that it waits only when it has ended, where its output is no terminal. */
function listens(port: number): boolean {
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")} `;
  const lines = ["tcp", "tcp6"].flatMap((file) => readFileSync(`/proc/net/${file}`, "utf8").split("\n"));
  return lines.some((line) => line.includes(local) && / 0A /.test(line));
}

function onPerf(network: LabNetwork): Subject {
  return async ({ program, size, iterations, queuePairs = 1 }) => {
    const test = program.slice("ib_".length).replace("_", "-");
    const folder = mkdtempSync(join(tmpdir(), "weir-bench-"));
    const file = join(folder, "server.json");
    const inside = (end: End, ...args: string[]) => {
      const perf = [process.execPath, "--import", "tsx", kMain, "perf", test, ...args, "-d", "weir0"];
      const counts = [
        "-s",
        String(size),
        "-n",
        String(iterations),
        ...(queuePairs > 1 ? ["-q", String(queuePairs)] : []),
      ];
      return new Timed(["nsenter", `--net=${network.namespace(end).path}`, ...perf, ...counts], {});
    };
    try {
      const server = inside("b", "--output", file);
      await server.until((text) => text.includes("Waiting for client"));
      const { text } = await inside("a", addressOf("b"), "--json").ended;
      await server.ended;
      const ends = [text.replace(/^CPU .*$/m, ""), readFileSync(file, "utf8")];
      const [client, served] = ends.map((json) => (JSON.parse(json) as PerfReport).results[0]);
      if (client === undefined || served === undefined) throw new Error(`weir perf ${test} has no result`);
      const { typical_latency: p50, p99_latency: p99 } = client;
      if (p50 !== undefined && p99 !== undefined) return { p50: p50 / 1000, p99: p99 / 1000 };
      const rate = program === "ib_read_bw" ? client.data_rx_rate : client.data_tx_rate;
      const cpu = (client.cpu_seconds + served.cpu_seconds) / ((size * iterations * queuePairs * 8) / 1e9);
      return { rate: rate ?? 0, messages: client.message_rate ?? 0, cpu };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

/** iperf3, one stream, with the offloads that veth has by default. */
async function transfer(network: LabNetwork, seconds: number): Promise<Sample> {
  const server = network.namespace("b").run("iperf3", ["--server", "--one-off", "--bind", addressOf("b")]);
  server.catch(() => {}); // the client says what is wrong
  const client = ["--client", addressOf("b"), "--time", String(seconds), "--length", "64K", "--json"];
  await sleep(300);
  const { stdout } = await network.namespace("a").run("iperf3", client);
  await server.catch(() => {});
  const { end } = JSON.parse(stdout) as {
    end: {
      sum_received: { bits_per_second: number; seconds: number };
      cpu_utilization_percent: { host_total: number; remote_total: number };
    };
  };
  const { bits_per_second: bits } = end.sum_received;
  const { host_total, remote_total } = end.cpu_utilization_percent;
  return { rate: bits / 1e9, cpu: (host_total + remote_total) / 100 / (bits / 1e9) };
}
