/** From counters, samples and what the workers say of themselves to the result contract. */
import os from "node:os";
import type { Flow, Scenario } from "../config/types.js";
import type { CounterTable } from "../native/counters.js";
import type { Distribution, WorkerOutcome } from "../native/types.js";
import { goodputLimit } from "../report/limits.js";
import type { Fidelity, FlowResult, NicResult, Result, SwitchResult } from "../report/result.js";
import { jainIndex } from "../report/statistics.js";
import { kEthernetOverhead, kHeaderBytes } from "./compose.js";
import type { Recorder } from "./recorder.js";

/** A gap of the poll loop, wall ns, that no scheduler noise of a healthy host makes; and how much of a run they may take. */
const kLongGap = 1e6;
const kMostAway = 0.02;
/** Meant ns: round trip, NICs and switches of the quickest networks that this is about. */
const kShortestLoop = 10e3;

export interface RunEvidence {
  scenario: Scenario;
  scale: number;
  recorder: Recorder;
  switches: CounterTable;
  nics: CounterTable;
  outcomes: readonly WorkerOutcome[];
}

/** Every frame of the run, MAC control included: sent + duplicated = received + dropped + impaired + missing. */
export interface FrameAccount {
  sent: number;
  received: number;
  /** By the switches, all reasons. */
  dropped: number;
  duplicated: number;
  /** Lost on purpose. */
  impaired: number;
  /** Sent, and not accounted for in any other way. */
  missing: number;
}

export function frameAccount(switches: CounterTable, nics: CounterTable): FrameAccount {
  const both = (name: string) => switches.sum(name) + nics.sum(name);
  let dropped = 0;
  for (const { description, value } of switches.entries()) {
    if (description.name.startsWith("drop_")) dropped += value;
  }
  // MAC control ends at the other end of its link; impairments do not spare it.
  const control = ["rx_pfc_frames", "rx_pause_frames", "rx_unsupported_op_phy", "rx_mac_control_unknown"];
  const sent = nics.sum("tx_packets") - perQueuePair(nics, "tx_packets") + both("tx_pfc_frames");
  const received =
    nics.sum("rx_packets") - perQueuePair(nics, "rx_packets") + control.reduce((sum, name) => sum + both(name), 0);
  const duplicated = both("duplicated") + switches.sum("flood_copies");
  const impaired = both("lost") - perQueuePair(nics, "lost") + both("overflow");
  return { sent, received, dropped, duplicated, impaired, missing: sent + duplicated - received - dropped - impaired };
}

/** Queue pairs count some of the same things as their NIC, under the same names. */
function perQueuePair(nics: CounterTable, name: string): number {
  let total = 0;
  for (const { description, value } of nics.entries()) {
    if (description.name === name && description.labels.qpn !== undefined) total += value;
  }
  return total;
}

export function composeResult(evidence: RunEvidence): Result {
  const { scenario, scale, switches, nics } = evidence;
  const flows = scenario.flows.map((flow) => flowResult(evidence, flow));
  const goodputs = flows.map((flow) => flow.goodput_bps);
  const frames = frameAccount(switches, nics);
  const pathMtus = [...new Set(scenario.hosts.map((host) => host.path_mtu))];
  // What headers, FCS, preamble and gap leave of a link's rate for payload, in packets of the path MTU.
  const payloadShare = Math.min(...pathMtus.map((mtu) => mtu / (mtu + kHeaderBytes + kEthernetOverhead)));
  const limit = goodputLimit(scenario, payloadShare);
  return {
    scenario: scenario.name,
    clock: "wire",
    scale,
    seed: scenario.seed,
    duration_s: scenario.duration / 1e9,
    warmup_s: scenario.warmup / 1e9,
    profile: scenario.congestion.algorithm === "none" ? "none" : scenario.congestion.profile,
    path_mtu: pathMtus.length === 1 ? pathMtus[0] : pathMtus,
    payload_share: payloadShare,
    fidelity: judge(evidence, frames),
    flows,
    totals: {
      goodput_bps: goodputs.reduce((sum, x) => sum + x, 0),
      jain: jainIndex(goodputs),
      ...(limit !== undefined && { goodput_limit_bps: limit }),
    },
    frames,
    switches: Object.fromEntries(scenario.switches.map((s) => [s.name, switchResult(evidence, s.name)])),
    nics: Object.fromEntries(scenario.hosts.map((host) => [host.name, nicResult(nics, host.name)])),
    environment: {
      kernel: os.release(),
      cpus: os.cpus().length,
      cpu: os.cpus()[0]?.model,
      node: process.version,
      backend: "af_packet",
    },
  };
}

function flowResult({ scenario, recorder, nics }: RunEvidence, flow: Flow): FlowResult {
  const from = Math.max(scenario.warmup, flow.start);
  const to = Math.min(scenario.duration, flow.stop);
  const seconds = Math.max(0, to - from) / 1e9;
  const { bytes, wireBytes } = recorder.delivered(flow.id, from, to);
  const sender = { flow: flow.id, device: flow.from };
  const receiver = { flow: flow.id, device: flow.to };
  return {
    id: flow.id,
    from: flow.from,
    to: flow.to,
    priority: flow.priority,
    goodput_bps: seconds > 0 ? (bytes * 8) / seconds : 0,
    wire_bps: seconds > 0 ? (wireBytes * 8) / seconds : 0,
    packets: nics.sum("tx_packets", sender),
    lost: nics.sum("lost", receiver),
    ecn_marked: nics.sum("ecn_marked", receiver),
    cnp_sent: nics.sum("cnp_sent", receiver),
    cnp_handled: nics.sum("cnp_handled", sender),
  };
}

function switchResult({ switches, outcomes }: RunEvidence, name: string): SwitchResult {
  const drops: Record<string, number> = {};
  for (const { description, value } of switches.entries()) {
    if (description.labels.switch !== name || value === 0 || !description.name.startsWith("drop_")) continue;
    const reason = description.name.slice("drop_".length);
    drops[reason] = (drops[reason] ?? 0) + value;
  }
  const queues: SwitchResult["queues"] = {};
  const distributions: Record<string, Record<string, [number, number][]>> = {};
  for (const queue of outcomes.flatMap((outcome) => outcome.queues)) {
    if (queue.switch !== name) continue;
    const { mean, p50, p95, p99, max } = queue;
    queues[queue.port] = { ...queues[queue.port], [queue.priority]: { mean, p50, p95, p99, max } };
    distributions[queue.port] = { ...distributions[queue.port], [queue.priority]: queue.cdf };
  }
  return {
    drops,
    ecn_marked: switches.sum("wred_ecn_marked_packets", { switch: name }),
    pfc_sent: byPriority(switches, "pfc_tx_packets", { switch: name }),
    pauses: byPriority(switches, "pfc_tx_transitions", { switch: name }),
    queues,
    queue_cdf: distributions,
  };
}

function nicResult(nics: CounterTable, name: string): NicResult {
  const device = { device: name };
  return {
    np_cnp_sent: nics.sum("np_cnp_sent", device),
    rp_cnp_handled: nics.sum("rp_cnp_handled", device),
    pfc_received: byPriority(nics, "rx_prio_pause", device),
    pfc_sent: byPriority(nics, "tx_prio_pause", device),
  };
}

/** Sums by priority, of priorities that have any. */
function byPriority(table: CounterTable, name: string, labels: Record<string, string>): Record<string, number> {
  const sums: Record<string, number> = {};
  for (let priority = 0; priority < 8; priority++) {
    const sum = table.sum(name, { ...labels, priority: String(priority) });
    if (sum > 0) sums[priority] = sum;
  }
  return sums;
}

/** Was this host, rather than the network, the bottleneck? Wall time throughout. */
function judge({ scenario, scale, outcomes, switches, nics }: RunEvidence, frames: FrameAccount): Fidelity {
  const us = (ns: number) => ns / 1000;
  const worst = (pick: (outcome: WorkerOutcome) => number) => Math.max(0, ...outcomes.map(pick));
  const gap = {
    p50: worst((o) => o.loop_gap.p50),
    p99: worst((o) => o.loop_gap.p99),
    max: worst((o) => o.loop_gap.max),
  };
  const lateness = { p99: worst((o) => o.timer_lateness.p99), max: worst((o) => o.timer_lateness.max) };
  const hostDrops = outcomes.reduce((sum, o) => sum + o.host_drops, 0);
  const descriptors = switches.sum("drop_no_descriptor") + nics.sum("tx_no_descriptor");
  const allowance = scenario.fidelity.lateness;
  // Half of the control loop's own delay: beyond it the host, not the network, decides when a sender hears of congestion.
  const loop = (Math.max(scenario.congestion.parameters.min_time_between_cnps, kShortestLoop) * scale) / 2;
  const away = worst((o) => timeAbove(o.loop_gap, kLongGap) / Math.max(1, o.loop_gap.mean * o.loop_gap.weight));
  const reasons: string[] = [];
  if (hostDrops > 0)
    reasons.push(
      `the host lost ${hostDrops} frames (receive ring overrun or refused transmission): try a larger scale, or a quieter host`,
    );
  if (frames.missing !== 0) reasons.push(`${frames.missing} frames are not accounted for`);
  if (descriptors > 0) reasons.push(`packet memory ran out ${descriptors} times`);
  if (gap.max > allowance)
    reasons.push(`the poll loop was away for ${ms(gap.max)}, more than the allowed lateness of ${ms(allowance)}`);
  if (scenario.congestion.algorithm !== "none" && gap.p99 > loop) {
    reasons.push(
      `1% of the poll loop's gaps exceed ${ms(gap.p99)}, more than half of the control loop at this scale (${ms(loop)}): try a larger scale`,
    );
  }
  if (away > kMostAway)
    reasons.push(`the poll loop was away for ${(100 * away).toFixed(1)}% of the time, in gaps over ${ms(kLongGap)}`);
  const overflow = outcomes.reduce((sum, o) => sum + o.record_overflow, 0);
  if (overflow > 0) reasons.push(`${overflow} samples were lost, the series are incomplete`);
  for (const { failure } of outcomes) {
    if (failure !== undefined) reasons.push(`a worker failed: ${failure}`);
  }
  return {
    valid: reasons.length === 0,
    reasons,
    loop_gap_us: { p50: us(gap.p50), p99: us(gap.p99), max: us(gap.max) },
    timer_lateness_us: { p99: us(lateness.p99), max: us(lateness.max) },
    host_drops: hostDrops,
    capture_dropped: outcomes.reduce((sum, o) => sum + o.capture_dropped, 0),
    stragglers: switches.sum("stragglers") + nics.sum("stragglers"),
    tuning: [...new Set(outcomes.flatMap((o) => o.tuning))],
  };
}

/** Sum of all values above `limit`. */
function timeAbove(distribution: Distribution, limit: number): number {
  let sum = 0;
  let before = 0;
  for (const [value, fraction] of distribution.cdf) {
    if (value > limit) sum += value * (fraction - before) * distribution.weight;
    before = fraction;
  }
  return sum;
}

function ms(ns: number): string {
  return `${(ns / 1e6).toFixed(2)} ms`;
}
