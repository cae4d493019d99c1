/** Results as perftest prints them, and as JSON with the names of open-traffic-generator's RoCEv2 flow results. */
import { z } from "zod";
import { madeNow } from "../../result/made.js";
import { madeSchema } from "../../result/made_schema.js";
import type { Destination } from "./messages.js";
import { isLatency, kPerfTests, type PerfTest } from "./options.js";
import { figuresOf, type Row } from "./run.js";
import type { Session } from "./session.js";
import type { BandwidthSample, Latency } from "./statistics.js";

/** Gb/s for each byte per ms. */
const kGbPerByteAndMs = 8e-6;

const count = z.int();
const gigabits = z.number().describe("Gb/s of payload.");
const nanoseconds = z.number().describe("One way, ns.");

const rowSchema = z.strictObject({
  size: count.describe("Bytes of a message."),
  message_tx: count.optional(),
  message_complete_rx: count.optional(),
  tx_bytes: count.optional(),
  rx_bytes: count.optional(),
  data_tx_rate: gigabits.optional(),
  data_rx_rate: gigabits.optional(),
  data_peak_rate: gigabits.optional().describe("In the best window of a run of a number of messages, Gb/s."),
  message_rate: z.number().optional().describe("Million messages a second."),
  flow_completion_time: z.number().describe("ms"),
  min_latency: nanoseconds.optional(),
  max_latency: nanoseconds.optional(),
  avg_latency: nanoseconds.optional(),
  typical_latency: nanoseconds.optional(),
  stdev_latency: nanoseconds.optional(),
  p99_latency: nanoseconds.optional(),
  p999_latency: nanoseconds.optional(),
  data_frames_tx: count.describe("Without acknowledgements and CNPs."),
  data_frames_retransmitted: count,
  frame_sequence_error: count,
  ecn_ce_rx: count,
  cnp_tx: count,
  cnp_rx: count,
  ack_tx: count,
  ack_rx: count,
  nak_tx: count,
  nak_rx: count,
  cpu_utilization: z.number().optional().describe("Of all CPUs of the host, percent."),
  cpu_seconds: z.number().describe("Of this process, its poll thread included."),
  cpu_seconds_per_gigabit: z.number().optional().describe("Sent and received, headers and all."),
});

export const perfSchema = z.strictObject({
  test: z.enum(kPerfTests),
  role: z.enum(["client", "server"]),
  made: madeSchema.optional(),
  interface: z.string(),
  address: z.string(),
  peer: z.string(),
  qps: count,
  tx_depth: count,
  bidirectional: z.literal(true).optional().describe("Both ends have sent; what the peer has sent is as it tells."),
  results: z.array(rowSchema),
});

export type PerfReport = z.infer<typeof perfSchema>;
export type PerfRow = z.infer<typeof rowSchema>;

export function reportOf(session: Session, rows: readonly Row[]): PerfReport {
  const { role, device, peer, options } = session;
  return {
    test: options.test,
    role,
    made: madeNow(),
    interface: device.interface,
    address: device.sourceFor(peer),
    peer,
    qps: options.qps,
    tx_depth: options.depth,
    ...(options.bidirectional && { bidirectional: true as const }),
    results: rows.map((row) => rowOf(session, row)),
  };
}

function rowOf({ role, options: { test, bidirectional } }: Session, row: Row): PerfRow {
  const { size, sample, peer, time, cpu, busy, counters } = row;
  const { messages } = sample;
  const counted = (...names: string[]) => names.reduce((sum, name) => sum + (counters.get(name) ?? 0), 0);
  const both = isLatency(test);
  // The end that READs is the one that receives.
  const isSource = (role === "client" || bidirectional) === (test !== "read-bw");
  const bytes = messages * size;
  const gigabitsOf = (of: BandwidthSample) => quotient(of.messages * size, of.time) * kGbPerByteAndMs;
  const rate = "latency" in sample ? undefined : gigabitsOf(sample);
  const other = peer && { messages: peer.messages, bytes: peer.messages * size, rate: gigabitsOf(peer) };
  const moved = gigabitsMoved(row);
  const control = counted("tx_acks", "tx_naks", "np_cnp_sent");
  return {
    size,
    ...((both || isSource) && { message_tx: messages, tx_bytes: bytes }),
    ...((both || !isSource) && { message_complete_rx: messages, rx_bytes: bytes }),
    ...(rate !== undefined && (isSource ? { data_tx_rate: rate } : { data_rx_rate: rate })),
    ...(other !== undefined &&
      (isSource
        ? { message_complete_rx: other.messages, rx_bytes: other.bytes, data_rx_rate: other.rate }
        : { message_tx: other.messages, tx_bytes: other.bytes, data_tx_rate: other.rate })),
    ...("latency" in sample
      ? latencies(sample.latency)
      : {
          ...(sample.peak > 0 && { data_peak_rate: sample.peak * size * kGbPerByteAndMs }),
          message_rate: quotient(messages, sample.time) / 1000,
        }),
    flow_completion_time: "latency" in sample ? time : sample.time,
    data_frames_tx: Math.max(0, counted("tx_packets") - control),
    data_frames_retransmitted: counted("retransmitted"),
    frame_sequence_error: counted("out_of_sequence"),
    ecn_ce_rx: counted("np_ecn_marked_roce_packets"),
    cnp_tx: counted("np_cnp_sent"),
    cnp_rx: counted("rp_cnp_handled", "rp_cnp_ignored"),
    ack_tx: counted("tx_acks"),
    ack_rx: counted("rx_acks"),
    nak_tx: counted("tx_naks"),
    nak_rx: counted("packet_seq_err", "rnr_nak_retry_err", "req_remote_access_errors", "req_remote_invalid_request"),
    cpu_utilization: busy * 100,
    cpu_seconds: cpu,
    ...(moved > 0 && { cpu_seconds_per_gigabit: cpu / moved }),
  };
}

/** Gigabits that the NIC has sent and received. */
function gigabitsMoved({ counters }: Row): number {
  return (((counters.get("tx_bytes") ?? 0) + (counters.get("rx_bytes") ?? 0)) * 8) / 1e9;
}

function latencies({ min, max, typical, average, deviation, p99, p999 }: Latency) {
  return {
    min_latency: min * 1000,
    max_latency: max * 1000,
    avg_latency: average * 1000,
    typical_latency: typical * 1000,
    stdev_latency: deviation * 1000,
    p99_latency: p99 * 1000,
    p999_latency: p999 * 1000,
  };
}

function quotient(value: number, by: number): number {
  return by > 0 ? value / by : 0;
}

const kRule = "-".repeat(87);
const kVerbs = { write: "RDMA_Write", read: "RDMA_Read", send: "Send" } as const;

/** perftest's lines before the first result, as far as they have a meaning here. */
export function describeStart(session: Session): string {
  const { device, options, role, local, remote } = session;
  const { test, qps, depth } = options;
  const verb = kVerbs[test.slice(0, test.indexOf("-")) as keyof typeof kVerbs];
  const unit = options.gbits ? "Gb/sec" : "MB/sec";
  const columns = isLatency(test)
    ? " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] "
    : ` #bytes     #iterations    BW peak[${unit}]    BW average[${unit}]   MsgRate[Mpps]`;
  return [
    kRule,
    `                    ${verb} ${isLatency(test) ? "Latency" : options.bidirectional ? "Bidirectional BW" : "BW"} Test`,
    ` Device          : ${device.interface}`,
    ` Number of qps   : ${qps}`,
    " Connection type : RC",
    ...(role === "client" ? [` TX depth        : ${depth}`] : []),
    ` Mtu             : ${session.pathMtu}[B]`,
    " rdma_cm QPs     : ON",
    " Data ex. method : rdma_cm",
    kRule,
    ...local.map((end) => ` local address: ${describeEnd(end, test)}`),
    ...remote.map((end) => ` remote address: ${describeEnd(end, test)}`),
    kRule,
    options.cpuUtil ? `${columns}    CPU_Util[%]` : columns,
    "",
  ].join("\n");
}

export function describeRow(session: Session, row: Row): string {
  return session.options.cpuUtil
    ? `${describeFigures(session, row)}\t    ${(row.busy * 100).toFixed(2)}\n`
    : `${describeFigures(session, row)}\n`;
}

/** Figures that `--output` may ask for. */
export const kFigures = ["bandwidth", "message_rate", "latency"] as const;
export type Figure = (typeof kFigures)[number];

/** One figure of a row on a line of its own: average bandwidth, messages in millions per second, or average latency in us. */
export function describeFigure(session: Session, { size, sample, peer }: Row, figure: Figure): string {
  if ("latency" in sample) return `${sample.latency.average.toFixed(6)}\n`;
  const name = figure === "message_rate" ? "messageRate" : "average";
  const both = [sample, ...(peer === undefined ? [] : [peer])];
  return `${both.reduce((sum, each) => sum + figuresOf(session, size, each)[name], 0).toFixed(6)}\n`;
}

function describeFigures(session: Session, { size, sample, peer }: Row): string {
  const { messages } = sample;
  if ("latency" in sample) {
    const { min, max, typical, average, deviation, p99, p999 } = sample.latency;
    const [a, b, c, d, e, f, g] = [min, max, typical, average, deviation, p99, p999].map((us) =>
      us.toFixed(2).padEnd(7),
    );
    // Blanks and tabs are perftest's.
    return ` ${text(size, 7)} ${messages}          ${a}        ${b}      ${c}  \t       ${d}     \t${e}\t\t${f} \t\t${g}`;
  }
  // Figures of both directions, as perftest sums them up.
  const both = [sample, ...(peer === undefined ? [] : [peer])].map((each) => figuresOf(session, size, each));
  const sum = (name: "average" | "peak" | "messageRate") => both.reduce((total, figures) => total + figures[name], 0);
  const [average, peak, messageRate] = [sum("average"), sum("peak"), sum("messageRate")];
  const rate = messageRate.toFixed(6).padEnd(7);
  if (session.options.gbits && average < 0.1) {
    return ` ${text(size, 7)}    ${messages}           ${peak.toFixed(6)}            ${average.toFixed(6)}            ${rate}`;
  }
  const [highest, mean] = [peak, average].map((value) => value.toFixed(2).padEnd(7));
  return ` ${text(size, 7)}    ${text(messages, 10)}       ${highest}            ${mean}\t\t   ${rate}`;
}

/** The last lines: the cost of the test. */
export function describeCost(rows: readonly Row[]): string {
  const cpu = rows.reduce((sum, row) => sum + row.cpu, 0);
  const gigabits = rows.reduce((sum, row) => sum + gigabitsMoved(row), 0);
  const each = gigabits > 0 ? `, ${(cpu / gigabits).toFixed(3)} s for each Gb sent and received` : "";
  return `${kRule}\n CPU             : ${cpu.toFixed(3)} s${each}\n`;
}

function describeEnd({ qpn, reads, rkey, address, gid }: Destination, test: PerfTest): string {
  const memory = ` RKey 0x${hex(rkey, 6)} VAddr 0x${hex(address, 14)}`;
  return [
    `LID 0000 QPN 0x${hex(qpn, 4)}`,
    test === "read-bw" ? ` OUT 0x${hex(reads, 2)}` : "",
    test.startsWith("send-") ? "" : memory,
    `\n GID: ${[...gid].map((byte) => String(byte).padStart(2, "0")).join(":")}`,
  ].join("");
}

function hex(value: number | bigint, digits: number): string {
  return value.toString(16).padStart(digits, "0");
}

function text(value: number, width: number): string {
  return String(value).padEnd(width);
}
