/** Makes a result of counters, samples and the outcomes of workers. */

import { formatTime } from "../../base/units.js";
import { hearsNothing } from "../../congestion/flow_state.js";
import { type Counters, type CounterTable, countersOf, nonZero } from "../../native/counters.js";
import { type Distribution, distribution } from "../../native/histogram.js";
import type { WorkerOutcome } from "../../native/types.js";
import { type Completions, hasEnd } from "../../result/completions.js";
import {
  accountFrames,
  type FrameAccount,
  feedbackPerSecond,
  flowResult,
  nicResult,
  runFacts,
  switchResult,
} from "../../result/device_results.js";
import { eventsUntil, faultResults, happens } from "../../result/faults.js";
import { goodputLimit } from "../../result/goodput_limit.js";
import type { GraphResult } from "../../result/graph_result.js";
import { groupResults } from "../../result/groups.js";
import { hostFacts } from "../../result/made.js";
import { nothingSent } from "../../result/nothing.js";
import type { Recorder } from "../../result/recorder.js";
import type { Fidelity, FlowResult, PartResult, Result, SwitchResult } from "../../result/result.js";
import { jainIndex } from "../../result/statistics.js";
import { digestOf, linkName, Share } from "../../scenario/parts.js";
import { switchPorts } from "../../scenario/topology.js";
import type { Flow, Link, Scenario, SwitchConfig } from "../../scenario/types.js";
import type { AppliedChange } from "./changes.js";
import { halfControlLoop } from "./control_loop.js";
import type { MessageTimes } from "./message_times.js";
import { crossedFrames } from "./parts/crossed.js";
import type { JointReport } from "./parts/joint.js";
import type { ResidentsResult } from "./residents.js";

/** A gap of the poll loop, wall ns, that no scheduler noise of a healthy host makes; and the part of a run that such gaps may take. */
const kLongGap = 1e6;
const kMostAway = 0.02;
/** Part of a run that gaps longer than half of the control loop may take: as much as 1% of gaps does where all others are naps. */
const kMostSlow = 0.05;
/** Part of the median completion time that this host may add. */
const kMostAdded = 0.25;

/** Outcome of a worker with figures in place of histograms. */
export type MeasuredOutcome = ReturnType<typeof measured>;

export function measured(outcome: WorkerOutcome) {
  return {
    ...outcome,
    loop_gap: distribution(outcome.loop_gap),
    timer_lateness: distribution(outcome.timer_lateness),
    queues: outcome.queues.map(({ switch: name, port, priority, ...lengths }) => ({
      ...distribution(lengths),
      switch: name,
      port,
      priority,
    })),
  };
}

export interface RunEvidence {
  scenario: Scenario;
  scale: number;
  recorder: Recorder;
  completions: Completions;
  messageTimes: MessageTimes;
  switches: CounterTable;
  nics: CounterTable;
  outcomes: readonly MeasuredOutcome[];
  /** Changes of service rates that were made. */
  changes: readonly AppliedChange[];
  /** Changes of the scenario's parameters that somebody made while it ran. */
  parameterChanges: readonly ParameterChange[];
  /** Frames that are missing in capture files, and files that end early, each with why. */
  captures?: { dropped: number; errors: readonly string[] };
  /** Time at which it ended before its duration, meant ns from the start of traffic; and why, where somebody ended it. */
  ended?: { at: number; why?: string } | undefined;
  /** Part of the records that the last look before the end of traffic took. */
  unread: number;
  /** States of the scenario's faults, in its order. */
  faults: Parameters<typeof faultResults>[1];
  /** Frames that stood in queues at the end, under pauses that did not end. */
  frozen?: number;
  residents?: ResidentsResult;
  /** Results of message graphs, and why these cannot end. */
  graphs?: GraphResult[];
  stuck?: string | undefined;
  /** Their time line, as a file. */
  timeline?: string | undefined;
  /** Ends of links to other parts, if this is a part. */
  joints?: readonly JointReport[];
  /** Number of the run of all parts, if this is a part. */
  run?: number;
}

/** Time at which a run ended, meant ns. */
export const endOf = ({ scenario, ended }: Pick<RunEvidence, "scenario" | "ended">): number =>
  Math.min(scenario.duration, ended?.at ?? scenario.duration);

export interface ParameterChange {
  /** Meant ns from the start of traffic. */
  at: number;
  /** Assignments, each `path=value`. */
  set: readonly string[];
}

/** Account of all frames that the workers have counted; in a part, with those that have left for other parts and come from them. */
export function frameAccount(scenario: Scenario, switches: CounterTable, nics: CounterTable, frozen = 0): FrameAccount {
  const crossed = scenario.part === undefined ? undefined : crossedFrames(new Share(scenario), switches, nics);
  const account = accountFrames(switches, nics, { failing: happens(scenario), ...(crossed && { crossed }) });
  // A device that is frozen goes on to be paused: one pause of each link may be on its way when the run ends.
  const control = (way: "tx" | "rx") => switches.of(`control_${way}`).sum() + nics.of(`control_${way}`).sum();
  const pauses = frozen === 0 ? 0 : Math.min(2 * scenario.links.length, Math.max(0, control("tx") - control("rx")));
  const inNetwork = Math.max(0, Math.min(account.missing, frozen + pauses));
  return inNetwork === 0 ? account : { ...account, in_network: inNetwork, missing: account.missing - inNetwork };
}

/** @param transportCounters Names of the transport's counters. */
export function composeResult(evidence: RunEvidence, transportCounters: readonly string[] = []): Result {
  const { scenario, scale, switches, nics, parameterChanges, completions, residents } = evidence;
  const pairs = queuePairCounters(nics);
  const share = new Share(scenario);
  const whole = scenario.part === undefined;
  const own = scenario.flows.flatMap((flow, i) =>
    share.sees(flow) ? [ofShare(resultOf(evidence, pairs, flow, i), share, scenario.transport.type === "rc")] : [],
  );
  const flows = [...own, ...(residents?.flows ?? [])];
  const goodputs = flows.filter(({ end }) => end !== "sender").map((flow) => flow.goodput_bps);
  const fct = completions.result(endOf(evidence));
  const frames = frameAccount(scenario, switches, nics, evidence.frozen);
  const facts = runFacts(scenario);
  const { algorithm } = scenario.congestion;
  const feedback = feedbackPerSecond(algorithm, switches, nics, endOf(evidence) / 1e9);
  const limit = goodputLimit(scenario, facts.payload_share);
  return {
    scenario: scenario.name,
    clock: "wire",
    scale,
    ...facts,
    ...(evidence.ended !== undefined && { until_s: endOf(evidence) / 1e9 }),
    ...(parameterChanges.length > 0 && {
      changes: parameterChanges.map(({ at, set }) => ({ at_s: at / 1e9, set: [...set] })),
    }),
    ...(happens(scenario) && { events: eventsUntil(scenario, endOf(evidence)) }),
    ...(scenario.faults.length > 0 && {
      faults: faultResults(scenario, evidence.faults, evidence.recorder, endOf(evidence)),
    }),
    fidelity: judge(evidence, frames),
    flows,
    totals: {
      goodput_bps: totalGoodput(
        evidence,
        whole ? goodputs : scenario.flows.map(({ id }) => flows.find((one) => one.id === id)?.goodput_bps ?? 0),
      ),
      jain: jainIndex(goodputs),
      ...(feedback !== undefined && { feedback_per_s: feedback }),
      ...(limit !== undefined && whole && { goodput_limit_bps: limit }),
    },
    // Groups are told only of the whole: their flows are in several parts.
    ...(whole && { groups: groupResults(scenario, goodputs, completions.table) }),
    ...(fct !== undefined && { fct }),
    ...(evidence.graphs && { graphs: evidence.graphs }),
    frames,
    ...(residents?.programs && { programs: residents.programs }),
    ...(!whole && { part: partResult(evidence, share) }),
    switches: Object.fromEntries(
      scenario.switches.filter(({ name }) => share.has(name)).map((s) => [s.name, resultOfSwitch(evidence, s)]),
    ),
    nics: Object.fromEntries(
      scenario.hosts
        .filter(({ name }) => share.has(name))
        .map((host) => [host.name, nicResult(nics.at({ device: host.name }), algorithm, scale)]),
    ),
    ...(scenario.transport.type === "rc" && { transport: transportCounts(evidence, transportCounters) }),
    environment: { ...hostFacts(), backend: "af_packet" },
  };
}

/** Result of a flow as this part sees it: its other end may be in another part. */
function ofShare(flow: FlowResult, share: Share, reliable: boolean): FlowResult {
  const [from, to] = [share.has(flow.from), share.has(flow.to)];
  if (from && to) return flow;
  // A receiver of reliable connections sees what is lost; of streams it takes what was sent.
  return { ...flow, lost: to && reliable ? flow.lost : 0, end: from ? "sender" : "receiver" };
}

function partResult({ scenario, joints = [], switches, nics, run = 0 }: RunEvidence, share: Share): PartResult {
  const counted = crossedFrames(share, switches, nics);
  return {
    name: scenario.part ?? "",
    digest: digestOf(scenario),
    run,
    links: counted.map(({ crossing, sent, received }) => {
      const joint = joints.find((one) => one.crossing.link === crossing.link);
      return {
        link: linkName(scenario.links[crossing.link] as Link),
        part: crossing.farPart,
        interface: crossing.interface,
        kind: joint?.carrier.kind ?? "",
        mtu: joint?.carrier.mtu ?? 0,
        sent,
        received,
        round_trip_us: (joint?.roundTrip ?? 0) / 1000,
        losses: { ...joint?.losses },
      };
    }),
  };
}

/** Sums of the transport's counters over all NICs, without those that are 0. */
function transportCounts({ nics }: RunEvidence, names: readonly string[]): Record<string, number> {
  return nonZero(names.map((name) => [name, nics.sum(name)] as const));
}

type QueuePairCounters = (flow: string, host: string) => Counters;

/** Counters of queue pairs, found by flow and host. */
function queuePairCounters(nics: CounterTable): QueuePairCounters {
  const flows = nics.by("flow");
  return (flow, host) => (flows.get(flow) ?? countersOf([])).at({ device: host });
}

function resultOf(evidence: RunEvidence, pairs: QueuePairCounters, flow: Flow, number: number): FlowResult {
  const counters = { sender: pairs(flow.id, flow.from), receiver: pairs(flow.id, flow.to) };
  const { bytes, wireBytes, seconds } = delivered(evidence, counters.receiver, flow, number);
  return flowResult(flow, evidence.scenario, counters, { bytes, wireBytes }, seconds);
}

/** Payload and time as in virtual time: a flow with an end counts over its own lifetime, others after the warm-up. */
function delivered(
  evidence: RunEvidence,
  receiver: ReturnType<QueuePairCounters>,
  flow: Flow,
  number: number,
): { bytes: number; wireBytes: number; seconds: number } {
  const { scenario, recorder, completions } = evidence;
  const over = (from: number, to: number) => ({ seconds: Math.max(0, to - from) / 1e9 });
  if (hasEnd(flow) && completions.done(number)) {
    const [bytes, wireBytes] = [receiver.sum("rx_bytes"), receiver.sum("rx_wire_bytes")];
    return { bytes, wireBytes, ...over(flow.start, completions.latest[number] as number) };
  }
  const from = hasEnd(flow) ? flow.start : Math.max(scenario.warmup, flow.start);
  const to = Math.min(endOf(evidence), flow.stop);
  return { ...recorder.delivered(flow.id, from, to), ...over(from, to) };
}

/** Goodput of all flows; RDMA flows with an end count with what arrived after the warm-up, over that time. */
function totalGoodput(evidence: RunEvidence, goodputs: readonly number[]): number {
  const { flows, warmup } = evidence.scenario;
  const end = endOf(evidence);
  const seconds = (end - warmup) / 1e9;
  return goodputs.reduce((sum, goodput, i) => {
    const flow = flows[i];
    if (flow === undefined || !hasEnd(flow)) return sum + goodput;
    return seconds <= 0 ? sum : sum + (evidence.recorder.delivered(flow.id, warmup, end).bytes * 8) / seconds;
  }, 0);
}

function resultOfSwitch({ scenario, switches, outcomes }: RunEvidence, { name, qcn }: SwitchConfig): SwitchResult {
  const peers = switchPorts(scenario).get(name) ?? [];
  const ports = peers.map(({ peer }) => [peer, switches.at({ switch: name, port: peer })] as const);
  const queues = outcomes
    .flatMap((outcome) => outcome.queues)
    // Frames that go straight on leave a queue of length 0.
    .filter((queue) => queue.switch === name && queue.max > 0);
  return switchResult(switches.at({ switch: name }), queues, qcn.enabled ? ports : undefined);
}

/** Judges whether this host, rather than the network, was the bottleneck. All times are wall time. */
function judge(
  {
    scenario,
    scale,
    outcomes,
    switches,
    nics,
    messageTimes,
    changes,
    captures,
    ended,
    stuck,
    joints = [],
  }: RunEvidence,
  frames: FrameAccount,
): Fidelity {
  const us = (ns: number) => ns / 1000;
  const worst = (pick: (outcome: MeasuredOutcome) => number) => Math.max(0, ...outcomes.map(pick));
  const gap = {
    p50: worst((o) => o.loop_gap.p50),
    p99: worst((o) => o.loop_gap.p99),
    max: worst((o) => o.loop_gap.max),
  };
  const lateness = { p99: worst((o) => o.timer_lateness.p99), max: worst((o) => o.timer_lateness.max) };
  const hostDrops = outcomes.reduce((sum, o) => sum + o.host_drops, 0);
  const descriptors =
    switches.sum("drop_no_descriptor") + switches.sum("cn_cp_unsent_cnms") + nics.sum("tx_no_descriptor");
  const allowance = scenario.fidelity.lateness;
  const loop = halfControlLoop(scenario) * scale;
  const inGapsOver = (limit: number) =>
    worst((o) => timeAbove(o.loop_gap, limit) / Math.max(1, o.loop_gap.mean * o.loop_gap.weight));
  const away = inGapsOver(kLongGap);
  const longest = outcomes.reduce((a, b) => (b.loop_gap.max > a.loop_gap.max ? b : a));
  const longestAt = Math.max(0, longest.longest_gap_at) / scale;
  // Time that other threads ran on the CPU is theirs; the rest is an interrupt's, or that of the machine below a virtual one.
  const waited = Math.min(
    1,
    worst((o) => o.cpu_wait / Math.max(1, o.loop_gap.mean * o.loop_gap.weight)),
  );
  // Acknowledgements are a loop through both ends, too.
  const loops = scenario.transport.type === "rc" || !hearsNothing(scenario.congestion.algorithm);
  const slow = loops ? inGapsOver(loop) : 0;
  const reasons: string[] = [];
  if (stuck !== undefined) reasons.push(stuck);
  if (ended?.why !== undefined)
    reasons.push(`${ended.why}, at ${formatTime(ended.at, 4)} of ${formatTime(scenario.duration)}`);
  if (hostDrops > 0)
    reasons.push(
      `the host lost ${hostDrops} frames (receive ring overrun or refused transmission): try a larger scale, or a quieter host`,
    );
  // Frames that the host has lost are among the missing ones.
  const missing = frames.missing > 0 ? Math.max(0, frames.missing - hostDrops) : frames.missing;
  // Whether all parts together sent anything is judged when they are merged.
  const nothing = scenario.part === undefined ? nothingSent(frames) : undefined;
  if (nothing !== undefined) reasons.push(nothing);
  if (outcomes.some(({ loop_gap }) => loop_gap.weight === 0))
    reasons.push("a poll loop has no gaps to judge this host by");
  if (missing !== 0) reasons.push(`${missing} ${hostDrops > 0 ? "more " : ""}frames are not accounted for`);
  if (descriptors > 0) reasons.push(`packet memory ran out ${descriptors} times`);
  if (gap.max > allowance)
    reasons.push(
      `the poll loop was away for ${ms(gap.max)} at ${formatTime(Math.round(longestAt), 4)} of ${formatTime(scenario.duration)}, more than the allowed lateness of ${ms(allowance)} (fidelity.lateness)`,
    );
  if (loops && gap.p99 > loop) {
    reasons.push(
      `1% of the poll loop's gaps exceed ${ms(gap.p99)}, more than half of the control loop at this scale (${ms(loop)}): try a larger scale`,
    );
  }
  // Gaps are weighed by time, for a loop that spins has millions of short gaps beside each long one.
  if (slow > kMostSlow) {
    reasons.push(
      `for ${(100 * slow).toFixed(1)}% of the time the poll loop was in gaps of more than half of the control loop at this scale (${ms(loop)}): try a larger scale`,
    );
  }
  if (away > kMostAway)
    reasons.push(
      `the poll loop was away for ${(100 * away).toFixed(1)}% of the time, in gaps over ${ms(kLongGap)}; other threads had its CPU for ${(100 * waited).toFixed(1)}%`,
    );
  const added = addedDelay({ scenario, scale, outcomes, messageTimes });
  if (added !== undefined && added.share > kMostAdded)
    reasons.push(
      `this host adds about ${formatTime(Math.round(added.ns), 3)} to the time of each message, ${(100 * added.share).toFixed(0)}% of the median: try a larger scale`,
    );
  for (const { crossing, roundTrip } of joints) {
    if (roundTrip <= allowance) continue;
    reasons.push(
      `${crossing.interface} takes ${ms(roundTrip)} to part ${crossing.farPart} and back, more than the allowed lateness of ${ms(allowance)}`,
    );
  }
  const late = changes.reduce((worst, change) => Math.max(worst, change.late), 0);
  if (late > allowance)
    reasons.push(`rates or routes were changed ${ms(late)} late, more than the allowed lateness of ${ms(allowance)}`);
  const overflow = outcomes.reduce((sum, o) => sum + o.record_overflow, 0);
  if (overflow > 0) reasons.push(`${overflow} samples were lost, the series are incomplete`);
  const untold = nics.sum("untold_messages");
  if (untold > 0) reasons.push(`${untold} messages were complete, and are missing in the completion times`);
  for (const { failure } of outcomes) {
    if (failure !== undefined) reasons.push(`a worker failed: ${failure}`);
  }
  return {
    valid: reasons.length === 0,
    reasons,
    loop_gap_us: { p50: us(gap.p50), p99: us(gap.p99), max: us(gap.max) },
    loop_gap_max_at_s: longestAt / 1e9,
    cpu_wait_ms: worst((o) => o.cpu_wait) / 1e6,
    timer_lateness_us: { p99: us(lateness.p99), max: us(lateness.max) },
    host_drops: hostDrops,
    ...(added !== undefined && { completion_delay_us: added.ns / 1000 }),
    ...(changes.length > 0 && { changes: changes.map(({ at, late }) => ({ at_s: at / 1e9, late_us: us(late) })) }),
    capture_dropped: captures?.dropped ?? 0,
    stragglers: switches.sum("stragglers") + nics.sum("stragglers"),
    capture_errors: [...(captures?.errors ?? [])],
    tuning: [...new Set(outcomes.flatMap((o) => o.tuning))],
  };
}

/**
 * Share of this host in the time of a message, meant ns: a frame that arrives waits for the rest of the gap that its device's poll
 * loop is in, at each device on the way, and its acknowledgement on the way back. Undefined when nothing is complete.
 */
function addedDelay({
  scenario,
  scale,
  outcomes,
  messageTimes,
}: Pick<RunEvidence, "scenario" | "scale" | "outcomes" | "messageTimes">): { ns: number; share: number } | undefined {
  const messages = messageTimes.summary();
  if (messages === undefined) return undefined;
  const [switches = 0, nics = 0] = outcomes.map(({ loop_gap }) => meanWait(loop_gap));
  const ways = scenario.transport.type === "rc" ? 2 : 1;
  const ns = (ways * ((messages.hops - 1) * switches + nics)) / scale;
  return { ns, share: ns / messages.median };
}

/** Mean wait of a frame that comes at any time: longer gaps are met more often. */
function meanWait({ cdf }: Distribution): number {
  let [sum, squares, before] = [0, 0, 0];
  for (const [value, fraction] of cdf) {
    sum += value * (fraction - before);
    squares += value * value * (fraction - before);
    before = fraction;
  }
  return sum > 0 ? squares / (2 * sum) : 0;
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
