/** What is observed: daemons whose data path does all that it can. */
import { setTimeout as sleep } from "node:timers/promises";
import { CounterTable } from "../../src/native/counters.js";
import { kRecordWords, type NativeWorker } from "../../src/native/types.js";
import { BenchDaemon, type DaemonCpu, freePort } from "../daemon.js";
import { type RunningDevice, WEIR_DEVICES } from "../dataplane/devices.js";
import { type Backend, NicBed } from "../dataplane/nic_bed.js";
import { kCpus, Testbed } from "../dataplane/testbed.js";
import { Counter, startSending } from "../dataplane/traffic.js";
import { type DaemonMode, type Observed, type Observer, observe } from "./observers.js";

/** What happened between two looks. */
export interface Slice {
  /** Frames/s. */
  rate: number;
  /** Frames for each second that the data path was on a CPU. */
  work: number;
  /** Of a CPU: the data path, the daemons' other threads. */
  workers: number;
  rest: number;
}

export interface Subject {
  look(mode: string): Promise<Observer>;
  /** Traffic flows meanwhile. */
  measure(seconds: number): Promise<Slice>;
}

const kSettleMs = 200;
/** Bytes, without FCS. */
const kFrame = 1066;
/** Four times as often as a lab does by default at scale 40. */
const kSampleNs = 1e6;
/** Between two looks at records and counters. */
const kLookMs = 10;
const kQueuePairs = 16;

/** A switch that forwards all that comes, as live XDP frames that cost their sender next to nothing. */
export async function withSwitch<Result>(
  backend: Backend,
  body: (subject: Subject) => Promise<Result>,
): Promise<Result> {
  const bed = await Testbed.create();
  const ends: (() => void | Promise<void>)[] = [() => bed.close()];
  try {
    const namespace = bed.network.namespace("dut").path;
    const [metrics, dashboard] = [await freePort(), await freePort()];
    const daemon = await BenchDaemon.start("switch", {
      name: "sw0",
      ports: ["gen", "sink"].map((name) => ({ interface: name, namespace, backend })),
      workers: [{ cpu: kCpus.device, polling: "adaptive" }],
      metrics: { port: metrics },
      dashboard: { port: dashboard },
    });
    ends.push(() => daemon.stop());
    const counter = await Counter.start(bed.sink);
    ends.push(() => counter.close());
    await bed.waitForForwarding(counter);
    const look = async () => {
      const { count, at } = await counter.read();
      return { count, at: at / 1e9, cpu: daemon.cpu() };
    };
    return await body({
      look: (mode) => observe(mode as DaemonMode, [{ daemon, ...urls(metrics, dashboard), port: "gen" }]),
      measure: (seconds) => forwarded(bed, look, seconds),
    });
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

/** The same switch as a lab has it: in a process that takes samples of its queues and looks at all counters. */
export async function withRecording<Result>(
  backend: Backend,
  body: (subject: Subject) => Promise<Result>,
): Promise<Result> {
  const device = WEIR_DEVICES.find(({ name }) => name === `weir ${backend}`);
  const bed = await Testbed.create();
  const counter = await Counter.start(bed.sink);
  let running: RunningDevice | undefined;
  try {
    const look = async () => {
      const { count, at } = await counter.read();
      const { user, system } = process.cpuUsage();
      const workers = running?.cpuSeconds() ?? 0;
      return { count, at: at / 1e9, cpu: { workers, rest: (user + system) / 1e6 - workers } };
    };
    return await body({
      look: async (mode) => {
        running = await device?.start(bed, { sampleInterval: mode === "records" ? kSampleNs : 0 });
        await bed.waitForForwarding(counter);
        const taking = mode === "records" ? record(running?.worker as NativeWorker) : undefined;
        return {
          stop: async () => {
            running?.close();
            return taking?.() ?? 0;
          },
        };
      },
      measure: (seconds) => forwarded(bed, look, seconds),
    });
  } finally {
    running?.close();
    await counter.close();
    bed.close();
  }
}

/** As a lab does. What it returns ends it, and says how many records there were. */
function record(worker: NativeWorker): () => number {
  const counters = new CounterTable(worker);
  const words = new Float64Array(kRecordWords * 64);
  let seen = 0;
  const timer = setInterval(() => {
    for (let count = 64; count === 64; seen += count) count = worker.drainRecords(words);
    counters.refresh();
  }, kLookMs);
  return () => {
    clearInterval(timer);
    return seen;
  };
}

/** A NIC that sends all it can to another, one on each CPU; what arrives counts. */
export async function withNics<Result>(backend: Backend, body: (subject: Subject) => Promise<Result>): Promise<Result> {
  return await NicBed.use(async (bed) => {
    const observed: Observed[] = [];
    try {
      for (const node of ["b", "a"] as const) observed.unshift(await startNic(bed, node, backend));
      const receiver = observed[1]?.daemon as BenchDaemon;
      const look = async () => {
        const count = await receiver.counter("rx_packets");
        const at = performance.now() / 1000;
        const cpus = observed.map(({ daemon }) => daemon.cpu());
        const sum = (of: (cpu: DaemonCpu) => number) => cpus.reduce((total, cpu) => total + of(cpu), 0);
        return { count, at, cpu: { workers: sum(({ workers }) => workers), rest: sum(({ rest }) => rest) } };
      };
      return await body({
        look: (mode) => observe(mode as DaemonMode, observed),
        measure: (seconds) => between(look, seconds),
      });
    } finally {
      for (const { daemon } of observed) await daemon.stop();
    }
  });
}

async function startNic(bed: NicBed, node: "a" | "b", backend: Backend): Promise<Observed> {
  const { namespace, mac } = bed.station(node);
  const [peer, own, other] =
    node === "a" ? (["b", "10.78.0.1", "10.78.0.2"] as const) : (["a", "10.78.0.2", "10.78.0.1"] as const);
  const [metrics, dashboard] = [await freePort(), await freePort()];
  const pairs = Array.from({ length: kQueuePairs }, (_, i) => ({
    name: `qp${i}`,
    peer,
    ...(node === "a" && { send: { message: "64KB" } }),
  }));
  const daemon = await BenchDaemon.start("nic", {
    name: `roce-${node}`,
    interface: "weir0",
    namespace,
    backend,
    address: own,
    mac,
    rate: "100Gbps",
    peers: [{ name: peer, address: other, mac: bed.station(peer).mac }],
    queue_pairs: pairs,
    // The sender's is the one that is to be held back by nothing else.
    worker: { cpu: node === "a" ? kCpus.device : kCpus.generator, polling: node === "a" ? "busy" : "adaptive" },
    metrics: { port: metrics, per_qp: true },
    dashboard: { port: dashboard },
  });
  return { daemon, ...urls(metrics, dashboard), port: "weir0" };
}

function urls(metrics: number, dashboard: number): Pick<Observed, "metricsUrl" | "dashboardUrl"> {
  return { metricsUrl: `http://127.0.0.1:${metrics}/metrics`, dashboardUrl: `http://127.0.0.1:${dashboard}/` };
}

type Look = () => Promise<{ count: number; at: number; cpu: DaemonCpu }>;

async function forwarded(bed: Testbed, look: Look, seconds: number): Promise<Slice> {
  const { result } = startSending(bed.sending("xdp", kFrame, seconds + (2 * kSettleMs) / 1000));
  await sleep(kSettleMs);
  const slice = await between(look, seconds);
  await result;
  return slice;
}

async function between(look: Look, seconds: number): Promise<Slice> {
  const before = await look();
  await sleep(seconds * 1000);
  const after = await look();
  const took = after.at - before.at;
  const frames = after.count - before.count;
  const workers = after.cpu.workers - before.cpu.workers;
  return {
    rate: frames / took,
    work: frames / workers,
    workers: workers / took,
    rest: (after.cpu.rest - before.cpu.rest) / took,
  };
}
