/**
 * Software NICs on a veth pair, as `weir nic` runs them: host a, the one that sends, and host b.
 *
 * What a sends is delivered to b within a's system call, on a's CPU, unless deliverElsewhere() is called; so a row of a sender includes
 * what its frames cost at b up to where they are dropped or put into a ring.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { kEct0, kFirstQpn, udpSourcePort } from "../../src/device/behaviour.js";
import { composeNicWorker } from "../../src/device/compose.js";
import { loadNicDaemon } from "../../src/device/file/load.js";
import { inspectInterface } from "../../src/host/interface.js";
import { LabNetwork } from "../../src/host/veth.js";
import { loadAddon } from "../../src/native/addon.js";
import { CounterTable } from "../../src/native/counters.js";
import type { NativeAddon, NativeQueuePair, NativeWorker, Polling, WorkerConfig } from "../../src/native/types.js";
import { hostIp, hostMac } from "../../src/scenario/addresses.js";
import { kEthernetOverhead } from "../../src/wire/frame_size.js";
import type { BenchOptions, Row } from "../row.js";
import { cpuSeconds } from "./cpu.js";
import { workerThread } from "./devices.js";
import { kCpus, receiveOn } from "./testbed.js";
import {
  type Arrivals,
  Counter,
  type QueuePairArrivals,
  type Recorded,
  readArrivals,
  type Station,
} from "./traffic.js";

export type Backend = "af_packet" | "af_xdp";
export const kBackends: readonly Backend[] = ["af_packet", "af_xdp"];

/** Ethernet, IPv4, UDP, BTH and ICRC: what a SEND that is one packet has beside its payload. */
const kHeaders = 14 + 20 + 8 + 12 + 4;
/** ECN codepoint of what came through congestion. */
export const kCongestionExperienced = 3;

export interface NicOptions {
  node: "a" | "b";
  cpu: number;
  /** `live`: live frames out, AF_XDP in. */
  backend: Backend | "live";
  polling: Polling;
  queuePairs: NativeQueuePair[];
  /** Of the link, default 10 Gb/s. */
  rate?: number;
  /** Least time between two CNPs of a flow, ns; default: as the profile has it. */
  cnpInterval?: number;
  /** Default: true. */
  dcqcn?: boolean;
}

export class NicBed {
  /** What was started, and has to end before the network does. */
  readonly #ends: (() => void | Promise<void>)[] = [];

  private constructor(readonly network: LabNetwork) {}

  /** A bed for as long as `measure` takes; what that starts on it ends with it. */
  static async use<Result>(measure: (bed: NicBed) => Promise<Result>): Promise<Result> {
    const bed = await NicBed.#create();
    try {
      return await measure(bed);
    } finally {
      for (const end of bed.#ends.reverse()) await end();
      bed.network.close();
    }
  }

  static async #create(): Promise<NicBed> {
    const nodes = ["a", "b"].map((name) => ({ name, role: "host" as const }));
    const link = { from: "a", to: "b", mtu: 1500, fromMac: hostMac(0), toMac: hostMac(1) };
    const bed = new NicBed(await LabNetwork.create(nodes, [link]));
    // Frames of AF_XDP pass a veth as those of sockets do; GRO makes it possible to receive them by NAPI.
    for (const node of ["a", "b"]) await bed.network.namespace(node).run("ethtool", ["-K", "weir0", "gro", "on"]);
    return bed;
  }

  station(node: "a" | "b"): Station {
    const mac = hostMac(node === "a" ? 0 : 1)
      .toString(16)
      .padStart(12, "0");
    return {
      namespace: this.network.namespace(node).path,
      interface: "weir0",
      mac: (mac.match(/../g) ?? []).join(":"),
    };
  }

  /** From now on what a sends is delivered to b on the other CPU, as if there were a wire between them. */
  async deliverElsewhere(): Promise<void> {
    await this.network.namespace("a").run("ethtool", ["-K", "weir0", "tso", "off"]);
    await receiveOn(this.network, "b", "weir0", kCpus.generator);
  }

  /** Traffic begins 100 ms later. */
  async start(options: NicOptions): Promise<RunningNic> {
    const nic = await RunningNic.start(this.#compose(options));
    this.#ends.push(() => nic.close());
    return nic;
  }

  /** Counts and drops all that arrives. */
  async count(node: "a" | "b"): Promise<Counter> {
    const counter = await Counter.start(this.station(node));
    this.#ends.push(() => counter.close());
    return counter;
  }

  /** The same, and when it came is known at the end. */
  async record(node: "a" | "b", recorded: Recorded): Promise<{ counter: Counter; arrivals: () => Promise<Arrivals> }> {
    const directory = mkdtempSync(join(tmpdir(), "weir-bench-"));
    this.#ends.push(() => rmSync(directory, { recursive: true }));
    const file = join(directory, "arrivals");
    const counter = await Counter.record(this.station(node), file, recorded);
    this.#ends.push(() => counter.close());
    const arrivals = async () => {
      await counter.close();
      return readArrivals(file, recorded);
    };
    return { counter, arrivals };
  }

  #compose({
    node,
    cpu,
    backend,
    polling,
    queuePairs,
    rate = 10e9,
    cnpInterval,
    dcqcn = true,
  }: NicOptions): WorkerConfig {
    const { namespace } = this.station(node);
    const address = hostIp(node === "a" ? 0 : 1).join(".");
    const file = {
      name: node,
      interface: "weir0",
      namespace,
      address,
      rate: `${rate}bps`,
      mac: this.station(node).mac,
    };
    const { config } = loadNicDaemon("benchmark", { inspect: inspectInterface, text: JSON.stringify(file) });
    const receive = backend === "live" ? "af_xdp" : backend;
    const worker = composeNicWorker(config, { receive, transmit: backend, xdp_mode: "native", ring: 512 });
    Object.assign(worker, { cpu, polling });
    for (const nic of worker.nics) {
      nic.queue_pairs = queuePairs;
      if (!dcqcn) nic.congestion_control = "none";
      if (cnpInterval !== undefined) nic.cnp_interval = cnpInterval;
    }
    return worker;
  }
}

export class RunningNic {
  readonly #thread: string;
  readonly #counters: CounterTable;

  private constructor(
    readonly worker: NativeWorker,
    name: string,
  ) {
    this.#thread = workerThread(name);
    this.#counters = new CounterTable(worker);
  }

  static async start(config: WorkerConfig): Promise<RunningNic> {
    const addon = loadAddon<NativeAddon>();
    const worker = new addon.Worker(config);
    try {
      worker.open();
      worker.begin(addon.monotonicNow() + 100e6);
      await sleep(100);
      return new RunningNic(worker, config.name);
    } catch (error) {
      worker.close();
      throw error;
    }
  }

  /** Idempotent, as ends of a bed are: a measurement may end sooner what it started. */
  close(): void {
    this.worker.close();
  }

  /** CPU time of its thread so far, s. */
  cpuSeconds(): number {
    return cpuSeconds(process.pid, this.#thread);
  }

  /** Counters of the device itself. Not with very many queue pairs: their counters are read too. */
  counters(...names: string[]): number[] {
    this.#counters.refresh();
    const device = this.#counters.at({ qpn: undefined });
    return names.map((name) => device.sum(name));
  }
}

/** A row for each of the cases that are wanted. */
export async function rowsOf<Case>(
  cases: readonly Case[],
  rowName: (one: Case) => string,
  options: BenchOptions,
  measure: (one: Case) => Promise<Omit<Row, "name">>,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const one of cases.filter((each) => options.wants(rowName(each)))) {
    process.stderr.write(`  ${rowName(one)}\n`);
    rows.push({ name: rowName(one), ...(await measure(one)) });
  }
  return rows;
}

/**
 * `count` queue pairs of a that send SENDs of one packet each to those of the same numbers at b, together `total` packets/s (0: as
 * fast as the link has them). Their rates are spread evenly from half to one and a half times the mean if `spread`.
 * @param size Of a frame without FCS: 58 more than a multiple of 4.
 */
export function senders(
  count: number,
  size: number,
  total: number,
  { spread = true, ecn = kEct0 }: { spread?: boolean; ecn?: number } = {},
): NativeQueuePair[] {
  return Array.from({ length: count }, (_, i) => {
    const share = (spread ? 0.5 + (i + 0.5) / count : 1) / count;
    const rate = Math.round(total * share * wireBits(size));
    // Over the time between two packets, so that they do not begin all at once.
    const start = total === 0 ? 0 : Math.round((1e9 / total) * ((i * 7919) % count));
    return { ...queuePair(i, 0, size, ecn), start, rate_cap: rate };
  });
}

/** The queue pairs at b for senders(). */
export function receivers(count: number, size: number): NativeQueuePair[] {
  return Array.from({ length: count }, (_, i) => queuePair(i, 1, size, kEct0));
}

/** What a frame takes on the link. */
function wireBits(size: number): number {
  return (Math.max(size, 60) + kEthernetOverhead) * 8;
}

function queuePair(index: number, host: 0 | 1, size: number, ecn: number): NativeQueuePair {
  return {
    name: `qp${index}`,
    remote_qpn: kFirstQpn + index,
    path: {
      destination_mac: hostMac(1 - host),
      source_mac: hostMac(host),
      tagged: false,
      vlan_tci: 0,
      ip_version: 4,
      source_ip: hostIp(host),
      destination_ip: hostIp(1 - host),
      dscp: 26,
      ecn,
      udp_source_port: udpSourcePort(index),
    },
    priority: 3,
    operation: "send",
    path_mtu: 1024,
    message_bytes: size - kHeaders,
    total_bytes: 0,
    first_psn: 0,
    rate_cap: 0,
    remote_address: 0,
    remote_key: 0,
  };
}

/** How far the rate of each queue pair is off, from its first packet to its last, %; what was lost on the way does not count. */
export function rateErrors(
  arrivals: readonly QueuePairArrivals[],
  queuePairs: readonly NativeQueuePair[],
  size: number,
) {
  return arrivals.map(({ first, last, firstPsn, lastPsn }, i) => {
    const rate = ((lastPsn - firstPsn) * wireBits(size) * 1e9) / (last - first);
    return Math.abs(100 * (rate / (queuePairs[i]?.rate_cap ?? 0) - 1));
  });
}
