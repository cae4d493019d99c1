/**
 * Figure 1 of the DCQCN paper: TCP and RDMA by message size (section 2.1). Here: what is asked of the figure, and RDMA on the
 * simulated 40 Gb/s switch. message_sizes_wire.ts measures both on this host.
 */
import type { Plot } from "../../src/result/report/plot.js";
import { atLeast, atMost, grid, quantity, type Runs, statement, studyOf } from "../engine/study.js";
import { NO_HOST_MODEL, SOFT_NIC } from "./causes.js";
import { cpuPlot, latencyPlot, MESSAGE, SIZES, throughputPlot } from "./message_sizes_figure.js";
import {
  BENCH_SECONDS,
  doubtsOf,
  kPayloadShare,
  type Measured,
  measureOnWire,
  TCP_SIZES,
  type Throughput,
  WIRE_LINK,
} from "./message_sizes_wire.js";
import { dcqcnFigure } from "./paper.js";

const kFile = "dcqcn/message-sizes.yaml";
const kWhere = "section 2.1";
/** Operations whose latency is simulated. */
const kOperations = ["read", "write", "send"] as const;

/** Figures that either clock shows; the wire alone has TCP and CPUs. */
interface Seen {
  /** Throughput by size, Gb/s. */
  rdma: readonly number[];
  /** Throughput that headers leave, Gb/s. */
  limit: number;
  /** us */
  latency: { tcp?: number; read: number | undefined; write: number | undefined; send: number | undefined };
  wire?: Measured;
}

const gbps = (all: readonly Throughput[]) => all.map(({ bps }) => bps / 1e9);
/** % of all cores, by size. */
const shares = (all: readonly Throughput[], cores: number, used: (cpu: Throughput["cpu"]) => number) =>
  all.map(({ cpu }) => (100 * used(cpu)) / cores);
/** s of CPU for each Gb, of both ends and the kernel's threads. */
const cost = ({ bps, cpu }: Throughput) => (cpu.client + cpu.server + cpu.kernel) / (bps / 1e9);
const last = (all: readonly Throughput[]) => all.at(-1) as Throughput;

/** Quantity that the wire alone has. */
const onWire = (label: string, unit: string, of: (wire: Measured) => number) =>
  quantity(label, unit, ({ wire }: Seen) => wire && of(wire));
/** Quantity of RDMA, the highest of all sizes. */
const highest = (label: string, used: (cpu: Throughput["cpu"]) => number) =>
  onWire(label, "% of all cores", ({ rdma, cores }) => Math.max(...shares(rdma, cores, used)));
const ofSize = (label: string, { name }: (typeof SIZES)[number]) => `${label}, ${name}`;

const kQuantities = {
  ...grid(
    SIZES,
    ({ rdma }: Seen, size) => rdma[SIZES.indexOf(size)],
    ofSize,
  )({ rdma: quantity("RDMA throughput", "Gb/s", (gbps) => gbps) }),
  ...grid(
    TCP_SIZES,
    ({ wire }: Seen, size) => wire && gbps(wire.tcp)[TCP_SIZES.indexOf(size)],
    ofSize,
  )({ tcp: quantity("TCP throughput", "Gb/s", (gbps) => gbps) }),
  rdma_share: quantity(
    "RDMA, least throughput of all sizes / what headers leave of the link",
    "%",
    ({ rdma, limit }: Seen) => (100 * Math.min(...rdma)) / limit,
  ),
  tcp_small: onWire(
    "TCP, throughput at 4KB / at its largest messages",
    "%",
    ({ tcp }) => (100 * (tcp[0] as Throughput).bps) / last(tcp).bps,
  ),
  tcp_small_cpu: onWire("TCP at 4KB, CPU of the busier end", "% of a core", ({ tcp }) => {
    const { client, server } = (tcp[0] as Throughput).cpu;
    return 100 * Math.max(client, server);
  }),
  tcp_cpu: onWire("TCP at its largest messages, CPU of an end (mean of both)", "% of all cores", ({ tcp, cores }) => {
    const { client, server } = last(tcp).cpu;
    return (100 * ((client + server) / 2)) / cores;
  }),
  rdma_client_cpu: highest("RDMA client, CPU, highest of all sizes", ({ client }) => client),
  rdma_client_app: highest(
    "RDMA client without its NIC's thread, highest",
    ({ client, client_nic }) => client - client_nic,
  ),
  rdma_server_cpu: highest("RDMA server, CPU, highest of all sizes", ({ server }) => server),
  rdma_server_app: highest(
    "RDMA server without its NIC's thread, highest",
    ({ server, server_nic }) => server - server_nic,
  ),
  tcp_cost: onWire("TCP at its largest messages, CPU of both ends and the kernel's threads", "s per Gb", ({ tcp }) =>
    cost(last(tcp)),
  ),
  rdma_cost: onWire("RDMA at 4MB, the same", "s per Gb", ({ rdma }) => cost(last(rdma))),
  tcp_us: quantity("latency of 2 KB: TCP", "us", ({ latency }: Seen) => latency.tcp),
  read_us: quantity("latency of 2 KB: READ", "us", ({ latency }: Seen) => latency.read),
  write_us: quantity("latency of 2 KB: WRITE", "us", ({ latency }: Seen) => latency.write),
  send_us: quantity("latency of 2 KB: SEND", "us", ({ latency }: Seen) => latency.send),
  tcp_median_us: onWire("median latency of 2 KB: TCP", "us", ({ latency }) => latency.median.tcp),
  write_median_us: onWire("median latency of 2 KB: WRITE", "us", ({ latency }) => latency.median.write),
  send_median_us: onWire("median latency of 2 KB: SEND", "us", ({ latency }) => latency.median.send),
  tcp_to_rdma: onWire(
    "latency of TCP / of the slowest of READ, WRITE, SEND",
    "",
    ({ latency: { average } }) => average.tcp / Math.max(average.read, average.write, average.send),
  ),
  send_to_write: quantity("latency of SEND / of WRITE", "", ({ latency: { write, send } }: Seen) =>
    write === undefined || send === undefined ? undefined : send / write,
  ),
  cores: onWire("cores of this host", "", ({ cores }) => cores),
  others: onWire("CPU of other programs while it was measured, highest", "% of a core", ({ others }) => 100 * others),
};

const kSoftNic =
  "In the paper an adapter does the work. Weir's NIC is a thread of each process; what the application itself takes is listed without it.";

export const DCQCN_FIGURE_1 = studyOf<Seen>()({
  ...dcqcnFigure(1),
  title: "throughput, CPU and latency of TCP and RDMA",
  setup:
    "Two hosts on one link. RDMA READs of 4 KB to 4 MB on one queue pair, and TCP with writes of the same sizes; CPU of both ends; the latency of 2 KB by READ, WRITE, SEND and TCP. sim: RDMA alone, through a switch of 40 Gb/s. wire: network namespaces of this host joined by a veth pair; RDMA by `weir perf`, kernel TCP by iperf3 and sockperf.",
  choices: [
    "KB and MB of the figure's axis are read as 1024 and 1024^2 bytes. MTU 1500, path MTU 1024; the paper does not print them here.",
    `wire: a veth pair has no rate. The link of RDMA is the NIC's line rate, ${WIRE_LINK / 1e9} Gb/s, which is also what a veth says of itself; TCP is compared with its own highest throughput.`,
    "wire: all runs on this host's cores, server and client together; the paper has 16 cores for each. CPU is the time of each process on a core in the middle half of a run, as a share of all cores.",
    "wire: an RDMA end is one application thread and the soft NIC's thread. An adapter takes the latter's work off the CPU; here nothing does.",
    "wire: TCP as in the paper, with segmentation offload and zero copy, but with one stream for each core of this host instead of 16 threads on 16 cores. iperf3 writes at most 1 MiB at a time: TCP ends there, and stands for 4 MB.",
    "wire: latency of WRITE, SEND and TCP is half of the time to and fro of one message, of READ from posting to completion, as perftest has it. `weir perf` runs in JavaScript beside its NIC's thread and polls; sockperf is native and blocks in recv().",
    "sim: throughput is of READs, 16 under way.",
    "sim: latency is from posting to completion, and consists of time on two links with 3 m of cable each and on a switch that stores and forwards. It leaves out PCIe, the adapters' own processing, the switch's pipeline, driver and application.",
  ],
  quantities: kQuantities,
  statements: [
    statement(
      "with 4MB message size, to drive full throughput, TCP consumes, on average, over 20% CPU cycles across all cores",
      kWhere,
      "at its largest messages TCP takes more than 20% of all cores, mean of both ends",
      [atLeast("tcp_cpu", 20)],
    ),
    statement(
      "At smaller message sizes, TCP cannot saturate the link as CPU becomes the bottleneck.",
      kWhere,
      "at 4 KB TCP moves at most 90% of what it moves at its largest messages, and one end has a core in use for 90% of the time",
      [atMost("tcp_small", 90), atLeast("tcp_small_cpu", 90)],
    ),
    statement(
      "the CPU utilization of the RDMA client is under 3%, even for small message sizes",
      kWhere,
      "at every size at most 3% of all cores",
      [atMost("rdma_client_cpu", 3)],
      kSoftNic,
      SOFT_NIC,
    ),
    statement(
      "The RDMA server, as expected, consumes almost no CPU cycles.",
      kWhere,
      "at every size at most 1% of all cores",
      [atMost("rdma_server_cpu", 1)],
      kSoftNic,
      SOFT_NIC,
    ),
    statement(
      "With RDMA, a single thread saturates the link.",
      kWhere,
      "one queue pair moves 90% or more of what headers leave of the link, at every size",
      [atLeast("rdma_share", 90)],
      "On the wire each packet costs CPU time at both ends, which is what limits it.",
      SOFT_NIC,
    ),
    statement(
      "TCP latency (25.4 us) is significantly higher than RDMA (1.7 us for Read/Write and 2.8 us for Send).",
      kWhere,
      "TCP takes at least twice as long as each of READ, WRITE and SEND",
      [atLeast("tcp_to_rdma", 2)],
      "On the wire a message of RDMA passes four threads, the application's and the NIC's at either end, and a NIC's thread sleeps up to 20 us between two turns (docs/design/wire.md). Of TCP the kernel takes it from one process to the other.",
      SOFT_NIC,
    ),
    statement(
      "1.7 us for Read/Write and 2.8 us for Send",
      kWhere,
      "SEND takes at least 1.1 times as long as WRITE",
      [atLeast("send_to_write", 1.1)],
      "On a link the two differ by 16 bytes of header. What makes a SEND slower, the receiver's work, is not simulated.",
      { sim: NO_HOST_MODEL, wire: SOFT_NIC },
    ),
  ],
  network: {
    clocks: ["sim"],
    trials: [
      ...SIZES.map(({ name, bytes }) => ({
        name: `rdma-${name}`,
        file: kFile,
        set: ["traffic.0.operation=read", `traffic.0.message=${bytes}`],
      })),
      ...kOperations.map((operation) => ({
        name: `latency-${operation}`,
        file: kFile,
        set: [`traffic.0.operation=${operation}`, `traffic.0.message=${MESSAGE}`, `traffic.0.bytes=${MESSAGE}`],
      })),
    ],
    see: seeSimulation,
    sim_seconds: 3,
  },
  bench: {
    seconds: BENCH_SECONDS,
    run: async (options) => {
      const measured = await measureOnWire(options);
      return { seen: seeWire(measured), doubts: doubtsOf(measured) };
    },
  },
  plots,
});

function seeSimulation(runs: Runs): Seen {
  const all = SIZES.map(({ name }) => runs[`rdma-${name}`]?.result.totals);
  const [read, write, send] = kOperations.map((operation) => runs[`latency-${operation}`]?.result.fct?.fct_us.mean);
  return {
    rdma: all.map((totals) => (totals?.goodput_bps ?? 0) / 1e9),
    limit: (all[0]?.goodput_limit_bps ?? Number.NaN) / 1e9,
    latency: { read, write, send },
  };
}

function seeWire(wire: Measured): Seen {
  return { rdma: gbps(wire.rdma), limit: (WIRE_LINK / 1e9) * kPayloadShare, latency: wire.latency.average, wire };
}

function plots({ rdma, limit, latency, wire }: Seen): Plot[] {
  const { tcp: tcpTime, read, write, send } = latency;
  if (wire === undefined) {
    return [
      throughputPlot([{ label: "RDMA READ", values: rdma }], [{ label: "headers leave", value: limit }]),
      latencyPlot({ READ: read, WRITE: write, SEND: send }),
    ];
  }
  const { tcp, cores } = wire;
  return [
    throughputPlot([
      { label: "TCP", values: gbps(tcp) },
      { label: "RDMA READ", values: rdma },
    ]),
    cpuPlot([
      { label: "TCP server", values: shares(tcp, cores, ({ server }) => server) },
      { label: "TCP client", values: shares(tcp, cores, ({ client }) => client) },
      { label: "RDMA server", values: shares(wire.rdma, cores, ({ server }) => server) },
      { label: "RDMA client", values: shares(wire.rdma, cores, ({ client }) => client) },
    ]),
    latencyPlot({ TCP: tcpTime, READ: read, WRITE: write, SEND: send }),
  ];
}
