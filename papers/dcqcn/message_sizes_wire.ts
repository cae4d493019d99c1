/**
 * Figure 1 of the DCQCN paper on this host: RDMA by `weir perf` and kernel TCP by iperf3 and sockperf, between two network namespaces
 * on a veth pair.
 */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { writeWhole } from "../../src/base/write_file.js";
import type { CpuUse } from "../engine/bench/cpu.js";
import { type ExchangeOptions, rdma, tcpLatency, tcpThroughput } from "../engine/bench/exchange.js";
import { HostPair } from "../engine/bench/host_pair.js";
import { IPERF_MOST_BYTES, requireTcpTools } from "../engine/bench/tcp.js";
import type { BenchOptions } from "../engine/experiment.js";
import { MESSAGE, SIZES } from "./message_sizes_figure.js";

/** Line rate of the soft NIC, bit/s. */
export const WIRE_LINK = 10e9;
export const TCP_SIZES = SIZES.filter(({ bytes }) => bytes <= IPERF_MOST_BYTES);
const kMtu = 1500;
/** Part of the link that is payload at the path MTU of 1024: Ethernet with preamble and gap, IPv4, UDP, BTH, ICRC. */
export const kPayloadShare = 1024 / (1024 + 14 + 20 + 8 + 12 + 4 + 24);
/** Each measurement; the middle half counts. */
const kSeconds = 4;
/** Use of CPUs by other programs, in cores: above it the figures do not count. */
const kDisturbed = 0.15;

/** 15 measurements, with the start of their programs. */
export const BENCH_SECONDS = 90;

/** One size of message. */
export interface Throughput {
  bps: number;
  cpu: CpuUse;
}

/** us */
export interface Latencies {
  average: { tcp: number; read: number; write: number; send: number };
  median: { tcp: number; write: number; send: number };
}

export interface Measured {
  /** Throughputs by size; TCP up to iperf3's largest. */
  tcp: readonly Throughput[];
  rdma: readonly Throughput[];
  latency: Latencies;
  /** Most that others have used of the cores in one measurement. */
  others: number;
  cores: number;
}

export async function measureOnWire(options: BenchOptions): Promise<Measured> {
  await requireTcpTools();
  const pair = await HostPair.create(kMtu);
  try {
    const measured = await measureAll(pair, options, availableParallelism());
    writeWhole(join(options.directory, "measured.json"), `${JSON.stringify(measured, undefined, 2)}\n`);
    return measured;
  } finally {
    pair.close();
  }
}

async function measureAll(pair: HostPair, options: BenchOptions, cores: number): Promise<Measured> {
  const { directory, signal, onProgress } = options;
  const context: ExchangeOptions = { directory, signal };
  const seconds = kSeconds;
  const steps = TCP_SIZES.length + SIZES.length + 4;
  let done = 0;
  let others = 0;
  const step = async <T extends { cpu: CpuUse }>(measurement: Promise<T>): Promise<T> => {
    const result = await measurement;
    others = Math.max(others, result.cpu.others);
    onProgress(++done / steps);
    return result;
  };
  const perf = (test: Parameters<typeof rdma>[1]["test"], size: number, depth?: number) =>
    step(rdma(pair, { test, size, seconds, ...(depth !== undefined && { depth }) }, context));

  const tcp: Throughput[] = [];
  const read: Throughput[] = [];
  for (const { bytes: size } of TCP_SIZES) {
    const { bps, cpu } = await step(tcpThroughput(pair, { size, seconds, streams: cores }, context));
    tcp.push({ bps, cpu });
  }
  for (const { bytes } of SIZES) {
    const { row, cpu } = await perf("read-bw", bytes);
    read.push({ bps: (row.data_rx_rate ?? 0) * 1e9, cpu });
  }
  const tcpTime = await step(tcpLatency(pair, { size: MESSAGE, seconds }, context));
  // One READ at a time; the rate is in millions a second.
  const { row: reads } = await perf("read-bw", MESSAGE, 1);
  const { row: writes } = await perf("write-lat", MESSAGE);
  const { row: sends } = await perf("send-lat", MESSAGE);
  const us = (ns: number | undefined) => (ns ?? Number.NaN) / 1000;
  return {
    tcp,
    rdma: read,
    latency: {
      average: {
        tcp: tcpTime.average,
        read: 1 / (reads.message_rate ?? Number.NaN),
        write: us(writes.avg_latency),
        send: us(sends.avg_latency),
      },
      median: { tcp: tcpTime.median, write: us(writes.typical_latency), send: us(sends.typical_latency) },
    },
    others,
    cores,
  };
}

/** Returns why figures of CPUs that others used as well do not count. */
export function doubtsOf({ others }: Pick<Measured, "others">): string[] {
  if (others <= kDisturbed) return [];
  return [`other programs used ${Math.round(100 * others)}% of a core, above ${100 * kDisturbed}%`];
}
