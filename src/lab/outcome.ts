/** From counters, samples and what the workers say of themselves to the result contract. */

import { formatTime } from "../base/units.js";
import { hearsNothing } from "../congestion/flow_state.js";
import type { CounterTable } from "../native/counters.js";
import { type Distribution, distribution } from "../native/histogram.js";
import type { WorkerOutcome } from "../native/types.js";
import { hostFacts } from "../report/host_facts.js";
import {
  accountFrames,
  type FrameAccount,
  feedbackPerSecond,
  flowResult,
  nicResult,
  runFacts,
  switchResult,
} from "../result/device_results.js";
import { goodputLimit } from "../result/goodput_limit.js";
import type { Recorder } from "../result/recorder.js";
import type { Fidelity, FlowResult, Result, SwitchResult } from "../result/result.js";
import { jainIndex } from "../result/statistics.js";
import { switchPorts } from "../scenario/topology.js";
import type { Flow, Scenario, SwitchConfig } from "../scenario/types.js";
import type { AppliedChange } from "./changes.js";
import { halfControlLoop } from "./control_loop.js";

/** A gap of the poll loop, wall ns, that no scheduler noise of a healthy host makes; and how much of a run they may take. */
const kLongGap = 1e6;
const kMostAway = 0.02;
/** How much of a run gaps longer than half of the control loop may take: as much as 1% of gaps does where all others are naps. */
const kMostSlow = 0.05;

/** With figures in place of histograms. */
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
  switches: CounterTable;
  nics: CounterTable;
  outcomes: readonly MeasuredOutcome[];
  /** Changes of service rates that were made. */
  changes: readonly AppliedChange[];
  /** Of the scenario's parameters, by somebody while it ran. */
  parameterChanges: readonly ParameterChange[];
  /** Frames that are missing in capture files, and files that end early, each with why. */
  captures?: { dropped: number; errors: readonly string[] };
  /** Where somebody ended it before its duration, meant ns from the start of traffic, and why. */
  ended?: { at: number; why: string } | undefined;
}

/** Where a run ended, meant ns. */
export const endOf = ({ scenario, ended }: Pick<RunEvidence, "scenario" | "ended">): number =>
  Math.min(scenario.duration, ended?.at ?? scenario.duration);

export interface ParameterChange {
  /** Meant ns from the start of traffic. */
  at: number;
  /** Each `path=value`. */
  set: readonly string[];
}

/** Of all that the workers have counted. */
export function frameAccount(switches: CounterTable, nics: CounterTable): FrameAccount {
  const ofSwitches = switches.view();
  // Queue pairs count some of the same things as their NIC, under the same names.
  const ofNics = nics.view({}, "qpn");
  const both = (name: string) => ofSwitches.sum(name) + ofNics.sum(name);
  return accountFrames(ofSwitches, ofNics, { duplicated: both("duplicated"), lost: both("lost") + both("overflow") });
}

export function composeResult(evidence: RunEvidence): Result {
  const { scenario, scale, switches, nics, parameterChanges } = evidence;
  const flows = scenario.flows.map((flow) => resultOf(evidence, flow));
  const goodputs = flows.map((flow) => flow.goodput_bps);
  const frames = frameAccount(switches, nics);
  const facts = runFacts(scenario);
  const { algorithm } = scenario.congestion;
  const feedback = feedbackPerSecond(algorithm, switches.view(), nics.view({}, "qpn"), endOf(evidence) / 1e9);
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
    fidelity: judge(evidence, frames),
    flows,
    totals: {
      goodput_bps: goodputs.reduce((sum, x) => sum + x, 0),
      jain: jainIndex(goodputs),
      ...(feedback !== undefined && { feedback_per_s: feedback }),
      ...(limit !== undefined && { goodput_limit_bps: limit }),
    },
    frames,
    switches: Object.fromEntries(scenario.switches.map((s) => [s.name, resultOfSwitch(evidence, s)])),
    nics: Object.fromEntries(
      scenario.hosts.map((host) => [host.name, nicResult(nics.view({ device: host.name }), algorithm, scale)]),
    ),
    environment: { ...hostFacts(), backend: "af_packet" },
  };
}

function resultOf(evidence: RunEvidence, flow: Flow): FlowResult {
  const { scenario, recorder, nics } = evidence;
  const from = Math.max(scenario.warmup, flow.start);
  const to = Math.min(endOf(evidence), flow.stop);
  const counters = {
    sender: nics.view({ flow: flow.id, device: flow.from }),
    receiver: nics.view({ flow: flow.id, device: flow.to }),
  };
  return flowResult(flow, scenario, counters, recorder.delivered(flow.id, from, to), Math.max(0, to - from) / 1e9);
}

function resultOfSwitch({ scenario, switches, outcomes }: RunEvidence, { name, qcn }: SwitchConfig): SwitchResult {
  const peers = switchPorts(scenario).get(name) ?? [];
  const ports = peers.map(({ peer }) => [peer, switches.view({ switch: name, port: peer })] as const);
  const queues = outcomes
    .flatMap((outcome) => outcome.queues)
    // Frames that go straight on leave a queue of length 0.
    .filter((queue) => queue.switch === name && queue.max > 0);
  return switchResult(switches.view({ switch: name }), queues, qcn.enabled ? ports : undefined);
}

/** Was this host, rather than the network, the bottleneck? Wall time throughout. */
function judge(
  { scenario, scale, outcomes, switches, nics, changes, captures, ended }: RunEvidence,
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
  const slow = hearsNothing(scenario.congestion.algorithm) ? 0 : inGapsOver(loop);
  const reasons: string[] = [];
  if (ended !== undefined)
    reasons.push(`${ended.why}, at ${formatTime(ended.at, 4)} of ${formatTime(scenario.duration)}`);
  if (hostDrops > 0)
    reasons.push(
      `the host lost ${hostDrops} frames (receive ring overrun or refused transmission): try a larger scale, or a quieter host`,
    );
  if (frames.missing !== 0) reasons.push(`${frames.missing} frames are not accounted for`);
  if (descriptors > 0) reasons.push(`packet memory ran out ${descriptors} times`);
  if (gap.max > allowance)
    reasons.push(`the poll loop was away for ${ms(gap.max)}, more than the allowed lateness of ${ms(allowance)}`);
  if (!hearsNothing(scenario.congestion.algorithm) && gap.p99 > loop) {
    reasons.push(
      `1% of the poll loop's gaps exceed ${ms(gap.p99)}, more than half of the control loop at this scale (${ms(loop)}): try a larger scale`,
    );
  }
  // By time, for a loop that spins has millions of short gaps beside each long one.
  if (slow > kMostSlow) {
    reasons.push(
      `for ${(100 * slow).toFixed(1)}% of the time the poll loop was in gaps of more than half of the control loop at this scale (${ms(loop)}): try a larger scale`,
    );
  }
  if (away > kMostAway)
    reasons.push(`the poll loop was away for ${(100 * away).toFixed(1)}% of the time, in gaps over ${ms(kLongGap)}`);
  const late = changes.reduce((worst, change) => Math.max(worst, change.late), 0);
  if (late > allowance)
    reasons.push(`a rate was changed ${ms(late)} late, more than the allowed lateness of ${ms(allowance)}`);
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
    ...(changes.length > 0 && { changes: changes.map(({ at, late }) => ({ at_s: at / 1e9, late_us: us(late) })) }),
    capture_dropped: captures?.dropped ?? 0,
    stragglers: switches.sum("stragglers") + nics.sum("stragglers"),
    capture_errors: [...(captures?.errors ?? [])],
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
