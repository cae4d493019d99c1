/**
 * Figure 1 of the DCQCN paper: TCP and RDMA by message size (section 2.1). Here: what is asked of the figure, and RDMA on the
 * simulated 40 Gb/s switch. message_sizes_wire.ts measures both on this host.
 */
import { type Evidence, type Experiment, type Observation, type Quantity, statement } from "../experiment.js";
import { known } from "../measure.js";
import { latencyPlot, MESSAGE, SIZES, throughputPlot, throughputs } from "./message_sizes_figure.js";
import { BENCH_SECONDS, measureOnWire, TCP_SIZES, WIRE_LINK } from "./message_sizes_wire.js";
import { DCQCN_PAPER } from "./paper.js";

const kFile = "dcqcn/message-sizes.yaml";
const kWhere = "section 2.1";
/** Whose latency is simulated; scenarios do not have READ. */
const kOperations = ["write", "send"] as const;

const perSize = (protocol: string, label: string, sizes = SIZES): [string, Quantity][] =>
  sizes.map(({ name }) => [`${protocol}_${name}`, { label: `${label}, ${name}`, unit: "Gb/s" }]);

const quantities: Record<string, Quantity> = Object.fromEntries([
  ...perSize("rdma", "RDMA throughput"),
  ...perSize("tcp", "TCP throughput", TCP_SIZES),
  ["rdma_share", { label: "RDMA, least throughput of all sizes / what headers leave of the link", unit: "%" }],
  ["tcp_small", { label: "TCP, throughput at 4KB / at its largest messages", unit: "%" }],
  ["tcp_small_cpu", { label: "TCP at 4KB, CPU of the busier end", unit: "% of a core" }],
  ["tcp_cpu", { label: "TCP at its largest messages, CPU of an end (mean of both)", unit: "% of all cores" }],
  ["rdma_client_cpu", { label: "RDMA client, CPU, highest of all sizes", unit: "% of all cores" }],
  ["rdma_client_app", { label: "RDMA client without its NIC's thread, highest", unit: "% of all cores" }],
  ["rdma_server_cpu", { label: "RDMA server, CPU, highest of all sizes", unit: "% of all cores" }],
  ["rdma_server_app", { label: "RDMA server without its NIC's thread, highest", unit: "% of all cores" }],
  ["tcp_cost", { label: "TCP at its largest messages, CPU of both ends and the kernel's threads", unit: "s per Gb" }],
  ["rdma_cost", { label: "RDMA at 4MB, the same", unit: "s per Gb" }],
  ["tcp_us", { label: "latency of 2 KB: TCP", unit: "us" }],
  ["read_us", { label: "latency of 2 KB: READ", unit: "us" }],
  ["write_us", { label: "latency of 2 KB: WRITE", unit: "us" }],
  ["send_us", { label: "latency of 2 KB: SEND", unit: "us" }],
  ["tcp_median_us", { label: "median latency of 2 KB: TCP", unit: "us" }],
  ["write_median_us", { label: "median latency of 2 KB: WRITE", unit: "us" }],
  ["send_median_us", { label: "median latency of 2 KB: SEND", unit: "us" }],
  ["tcp_to_rdma", { label: "latency of TCP / of the slowest of READ, WRITE, SEND", unit: "" }],
  ["send_to_write", { label: "latency of SEND / of WRITE", unit: "" }],
  ["cores", { label: "cores of this host", unit: "" }],
  ["others", { label: "CPU of other programs while it was measured, highest", unit: "% of a core" }],
]);

const kSoftNic =
  "In the paper an adapter does the work. Weir's NIC is a thread of each process; what the application itself takes is listed without it.";

export const DCQCN_FIGURE_1: Experiment = {
  id: "dcqcn-fig1",
  paper: DCQCN_PAPER,
  place: "figure 1",
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
    "sim: scenarios have no READ. WRITEs stand for READs: from posting to completion of 2 KB the headers of the two differ by 4 ns. 16 are under way.",
    "sim: latency is from posting to completion, and consists of time on two links with 3 m of cable each and on a switch that stores and forwards. It leaves out PCIe, the adapters' own processing, the switch's pipeline, driver and application.",
  ],
  quantities,
  statements: [
    statement(
      "with 4MB message size, to drive full throughput, TCP consumes, on average, over 20% CPU cycles across all cores",
      kWhere,
      "at its largest messages TCP takes more than 20% of all cores, mean of both ends",
      [{ quantity: "tcp_cpu", min: 20 }],
    ),
    statement(
      "At smaller message sizes, TCP cannot saturate the link as CPU becomes the bottleneck.",
      kWhere,
      "at 4 KB TCP moves at most 90% of what it moves at its largest messages, and one end has a core in use for 90% of the time",
      [
        { quantity: "tcp_small", max: 90 },
        { quantity: "tcp_small_cpu", min: 90 },
      ],
    ),
    statement(
      "the CPU utilization of the RDMA client is under 3%, even for small message sizes",
      kWhere,
      "at every size at most 3% of all cores",
      [{ quantity: "rdma_client_cpu", max: 3 }],
      kSoftNic,
    ),
    statement(
      "The RDMA server, as expected, consumes almost no CPU cycles.",
      kWhere,
      "at every size at most 1% of all cores",
      [{ quantity: "rdma_server_cpu", max: 1 }],
      kSoftNic,
    ),
    statement(
      "With RDMA, a single thread saturates the link.",
      kWhere,
      "one queue pair moves 90% or more of what headers leave of the link, at every size",
      [{ quantity: "rdma_share", min: 90 }],
      "On the wire each packet costs CPU time at both ends, which is what limits it.",
    ),
    statement(
      "TCP latency (25.4 us) is significantly higher than RDMA (1.7 us for Read/Write and 2.8 us for Send).",
      kWhere,
      "TCP takes at least twice as long as each of READ, WRITE and SEND",
      [{ quantity: "tcp_to_rdma", min: 2 }],
      "On the wire a message of RDMA passes four threads, the application's and the NIC's at either end, and a NIC's thread sleeps up to 20 us between two turns (design.md). Of TCP the kernel takes it from one process to the other.",
    ),
    statement(
      "1.7 us for Read/Write and 2.8 us for Send",
      kWhere,
      "SEND takes at least 1.1 times as long as WRITE",
      [{ quantity: "send_to_write", min: 1.1 }],
      "On a link the two differ by 16 bytes of header. What makes a SEND slower, the receiver's work, is not simulated.",
    ),
  ],
  network: {
    clocks: ["sim"],
    trials: [
      ...SIZES.map(({ name, bytes }) => ({ name: `rdma-${name}`, file: kFile, set: [`traffic.0.message=${bytes}`] })),
      ...kOperations.map((operation) => ({
        name: `latency-${operation}`,
        file: kFile,
        set: [`traffic.0.operation=${operation}`, `traffic.0.message=${MESSAGE}`, `traffic.0.bytes=${MESSAGE}`],
      })),
    ],
    observe: observeSimulation,
    sim_seconds: 3,
  },
  bench: { seconds: BENCH_SECONDS, run: measureOnWire },
};

/** Throughput by size, and how long one message takes. */
function observeSimulation(runs: Readonly<Record<string, Evidence>>): Observation {
  const all = SIZES.map(({ name }) => runs[`rdma-${name}`]?.result.totals);
  const gbps = all.map((totals) => (totals?.goodput_bps ?? 0) / 1e9);
  const [bps] = all.map((totals) => totals?.goodput_limit_bps);
  const limit = (bps ?? Number.NaN) / 1e9;
  const [write, send] = kOperations.map((operation) => runs[`latency-${operation}`]?.result.fct?.fct_us.mean);
  return {
    values: known({
      ...throughputs("rdma", gbps),
      rdma_share: (100 * Math.min(...gbps)) / limit,
      write_us: write,
      send_us: send,
      send_to_write: write !== undefined && send !== undefined ? send / write : undefined,
    }),
    plots: [
      throughputPlot([{ label: "RDMA", values: gbps }], [{ label: "headers leave", value: limit }]),
      latencyPlot({ "READ, WRITE": write, SEND: send }),
    ],
  };
}
