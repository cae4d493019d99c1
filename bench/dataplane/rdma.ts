/**
 * `weir perf` between two hosts, beside the kernel's TCP (iperf3) and what offers interfaces of RDMA over that: UCX and libfabric, as the
 * distribution has them. One veth pair of MTU 4200 with its default offloads, or two with a `weir switch` without rates between them.
 *
 * Every round has all of them in turn. CPU is of the processes, with what the kernel does on their behalf; UCX and libfabric poll.
 */
import { availableParallelism } from "node:os";
import { median } from "simple-statistics";
import type { LabNetwork } from "../../src/host/veth.js";
import { BenchDaemon } from "../daemon.js";
import type { BenchOptions, Metric, Row } from "../row.js";
import { addressOf, at, type Ends, installed, listensIn, pair, Timed, tcpStream, weirPerf } from "./ends.js";

export const name = "rdma";
export const title = "RDMA between two hosts, beside TCP and what runs over it";

const kMtu = 4200;
const kTcp = "iperf3, one stream";
const kUcxPort = 13_337;
const kPingPongPort = 47_592;
/** Of a CPU: it is the limit. */
const kBusy = 0.85;

interface Sample {
  /** Of payload, Gb/s. */
  rate?: number;
  /** Million a second. */
  messages?: number;
  /** One way, us. */
  p50?: number;
  p99?: number;
  mean?: number;
  /** How long it took, without what comes before; s. */
  seconds?: number;
  /** How many CPUs each had; where it polls that says nothing. */
  cpus?: Partial<Record<"client" | "server" | "switch", number>>;
}

interface Case {
  name: string;
  measure(network: LabNetwork): Promise<Sample>;
  /** Also where the switch is between. */
  passes?: boolean;
}

const kSizes = [
  { text: "64 KiB", size: 65_536, iterations: 50_000 },
  { text: "1 MiB", size: 1 << 20, iterations: 4_000 },
];

function casesOf({ quick }: BenchOptions, has: { tcp: boolean; ucx: boolean; libfabric: boolean }): Case[] {
  const times = (iterations: number) => String(quick ? Math.ceil(iterations / 8) : iterations);
  const bulk = ["write", "read"].flatMap((verb) =>
    [4096, 1024].flatMap((mtu) =>
      kSizes.map(({ text, size, iterations }): Case => {
        const options = ["-s", String(size), "-n", times(iterations), "-m", String(mtu)];
        const measure = (network: LabNetwork) => ofPerf(network, `${verb}-bw`, ...options);
        return { name: `${verb} ${text}, path MTU ${mtu}, weir perf`, measure, passes: mtu === 4096 };
      }),
    ),
  );
  const small = ["write", "send"].map(
    (verb): Case => ({
      name: `${verb} 64 B, weir perf`,
      measure: (network) => ofPerf(network, `${verb}-bw`, "-s", "64", "-n", times(4_000_000)),
    }),
  );
  const latency: Case = {
    name: "write 2 B, latency, weir perf",
    measure: (network) => ofPerf(network, "write-lat", "-s", "2", "-n", times(100_000)),
  };
  const tcp: Case = { name: kTcp, measure: (network) => ofTcp(network, quick ? 1 : 2), passes: true };
  const ucx = [
    ...kSizes.map(({ text, size, iterations }) => ({ text, size, test: "tag_bw", iterations: iterations / 4 })),
    { text: "64 B", size: 64, test: "tag_bw", iterations: 500_000 },
    { text: "2 B, latency", size: 2, test: "tag_lat", iterations: 20_000 },
  ].map(({ text, size, test, iterations }): Case => {
    const counts = ["-s", String(size), "-n", times(iterations), "-w", "100"];
    return { name: `messages ${text}, UCX over tcp`, measure: (network) => ofUcx(network, test, counts) };
  });
  const libfabric = [
    { text: "64 KiB, one under way", size: 65_536, iterations: 5_000 },
    { text: "2 B, latency", size: 2, iterations: 20_000 },
  ].map(
    ({ text, size, iterations }): Case => ({
      name: `messages ${text}, libfabric over tcp`,
      measure: (network) => ofLibfabric(network, size, times(iterations)),
    }),
  );
  return [
    ...bulk,
    ...(has.tcp ? [tcp] : []),
    ...small,
    latency,
    ...(has.ucx ? ucx : []),
    ...(has.libfabric ? libfabric : []),
  ];
}

export async function run(options: BenchOptions): Promise<Row[]> {
  const cases = casesOf(options, {
    tcp: await installed("iperf3", "iperf3"),
    ucx: await installed("ucx_perftest", "ucx-utils"),
    libfabric: await installed("fi_pingpong", "libfabric-bin"),
  });
  const rounds = options.quick ? 1 : 3;
  const samples = new Map<string, Sample[]>();
  const ends: Ends = [];
  try {
    const direct = await pair(ends, kMtu);
    const switched = await throughSwitch(ends);
    for (let round = 1; round <= rounds; round++) {
      process.stderr.write(`  round ${round} of ${rounds}\n`);
      for (const { name, measure, passes } of cases) {
        const add = async (key: string, sample: () => Promise<Sample>) => {
          if (options.wants(key)) samples.set(key, [...(samples.get(key) ?? []), await sample()]);
        };
        await add(name, () => measure(direct));
        if (passes) await add(behind(name), () => switched(measure));
      }
    }
  } finally {
    for (const end of ends.reverse()) await end();
  }
  return [...samples].map(([key, taken]) =>
    rowOf(key, taken, samples.get(key.endsWith(kBehind) ? behind(kTcp) : kTcp)),
  );
}

const kBehind = ", through weir switch";
const behind = (name: string) => `${name}${kBehind}`;

function rowOf(name: string, taken: readonly Sample[], tcp: readonly Sample[] | undefined): Row {
  const metrics: Record<string, Metric> = {};
  const add = (metric: string, unit: string, values: readonly number[], better?: "less" | "more") => {
    if (values.length === 0) return;
    const range = { min: Math.min(...values), max: Math.max(...values) };
    metrics[metric] = { value: median(values), unit, ...range, ...(better && { better }) };
  };
  const all = (field: "rate" | "messages" | "p50" | "p99" | "mean") => taken.flatMap((one) => one[field] ?? []);
  add("rate", "Gb/s", all("rate"), "more");
  const streams = tcp?.flatMap(({ rate }) => rate ?? []) ?? [];
  if (metrics.rate !== undefined && tcp !== taken && streams.length > 0) {
    metrics["to iperf3"] = { value: metrics.rate.value / median(streams), unit: "", better: "more" };
  }
  add("messages", "million/s", all("messages"));
  add("p50", "us", all("p50"), "less");
  add("p99", "us", all("p99"));
  add("mean", "us", all("mean"), "less");
  const cpus = new Map<string, number>();
  for (const who of ["client", "server", "switch"] as const) {
    const values = taken.flatMap(({ cpus: own }) => own?.[who] ?? []);
    if (values.length === 0) continue;
    cpus.set(who, median(values));
    metrics[`${who} CPU`] = { value: 100 * median(values), unit: "%" };
  }
  return { name, metrics, note: limitOf(cpus) };
}

/** Who kept it from being faster. */
function limitOf(cpus: ReadonlyMap<string, number>): string {
  if (cpus.size === 0) return "both ends poll";
  const sum = [...cpus.values()].reduce((all, one) => all + one, 0);
  if (sum >= kBusy * availableParallelism()) return "all CPUs are the limit";
  const busy = [...cpus].flatMap(([who, share]) => (share >= kBusy ? [who] : []));
  return busy.length > 0
    ? `the ${busy.join("'s and the ")}'s CPU is the limit`
    : "no CPU is the limit: who waits is woken";
}

/** Two cables into a switch as a user starts it, without rates. */
async function throughSwitch(ends: Ends): Promise<(measure: Case["measure"]) => Promise<Sample>> {
  const network = await pair(ends, kMtu, true);
  const namespace = network.namespace("sw").path;
  const ports = ["a", "b"].map((name) => ({ interface: name, namespace }));
  const daemon = await BenchDaemon.start("switch", { name: "bench", ports, metrics: false });
  ends.push(() => daemon.stop());
  return async (measure) => {
    const [before, start] = [daemon.cpu().workers, performance.now()];
    const sample = await measure(network);
    // Programs take a while to begin, in which it sleeps.
    const share = (daemon.cpu().workers - before) / (sample.seconds ?? (performance.now() - start) / 1000);
    return { ...sample, cpus: { ...sample.cpus, switch: share } };
  };
}

async function ofPerf(network: LabNetwork, ...options: string[]): Promise<Sample> {
  const { client, server } = await weirPerf(network, ...options);
  const { typical_latency: p50, p99_latency: p99, message_rate: messages } = client;
  const seconds = client.flow_completion_time / 1000;
  const cpus = { client: client.cpu_seconds / seconds, server: server.cpu_seconds / seconds };
  if (p50 !== undefined && p99 !== undefined) return { p50: p50 / 1000, p99: p99 / 1000, cpus, seconds };
  const rate = client.data_tx_rate ?? client.data_rx_rate;
  return { ...(rate && { rate }), ...(messages && { messages }), cpus, seconds };
}

async function ofTcp(network: LabNetwork, seconds: number): Promise<Sample> {
  const { rate, client, server } = await tcpStream(network, seconds);
  return { rate, cpus: { client, server }, seconds };
}

/** A server on b, and its client on a once it listens. */
async function serve(
  network: LabNetwork,
  port: number,
  command: readonly string[],
  client: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const serving = new Timed(at(network, "b", ...command), environment);
  const sockets = () => network.namespace("b").run("cat", ["/proc/net/tcp", "/proc/net/tcp6"]);
  await serving.until(async () => listensIn((await sockets()).stdout, port));
  const { text } = await new Timed(at(network, "a", ...command, ...client), environment).ended;
  await serving.ended;
  return text;
}

/** The line of numbers: messages, their latency, in the middle and at all, us; MB/s (2^20), and messages a second, now and over all. */
async function ofUcx(network: LabNetwork, test: string, counts: readonly string[]): Promise<Sample> {
  const environment = { UCX_TLS: "tcp", UCX_NET_DEVICES: "weir0" };
  const client = [addressOf("b"), "-t", test, ...counts, "-f"];
  const text = await serve(network, kUcxPort, ["ucx_perftest", "-p", String(kUcxPort)], client, environment);
  const line = text.split("\n").find((one) => /^\s*\d+(\s+[\d.]+){7}\s*$/.test(one));
  if (line === undefined) throw new Error(`ucx_perftest printed no result: ${text}`);
  const [, p50, , , , megabytes = 0, , messages = 0] = line.trim().split(/\s+/).map(Number);
  if (test.endsWith("_lat")) return { ...(p50 && { p50 }) };
  return { rate: (megabytes * 8 * 2 ** 20) / 1e9, messages: messages / 1e6 };
}

/** There and back: bytes, sent, acknowledged, all of them, s, MB/s (10^6), us for one way, and millions a second. */
async function ofLibfabric(network: LabNetwork, size: number, iterations: string): Promise<Sample> {
  const command = ["fi_pingpong", "-p", "tcp;ofi_rxm", "-e", "rdm", "-S", String(size), "-I", iterations];
  const text = await serve(network, kPingPongPort, command, [addressOf("b")], {});
  const numbers = /=\S+\s+\S+\s+[\d.]+s\s+([\d.]+)\s+([\d.]+)/.exec(text);
  if (numbers === null) throw new Error(`fi_pingpong printed no result: ${text}`);
  const [megabytes, microseconds] = numbers.slice(1).map(Number) as [number, number];
  return size > 64 ? { rate: (megabytes * 8) / 1e3 } : { mean: microseconds };
}
