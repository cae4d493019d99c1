/** Makes a result of a simulation's counters, samples and completions. */

import { formatTime } from "../../base/units.js";
import type { Distribution } from "../../native/histogram.js";
import { type Completions, hasEnd } from "../../result/completions.js";
import {
  accountFrames,
  feedbackPerSecond,
  flowResult,
  nicResult,
  runFacts,
  switchResult,
  wholeDistributions,
} from "../../result/device_results.js";
import { type FastForwardResult, fastForwardReasons } from "../../result/fast_forward_result.js";
import { eventsUntil, faultResults, happens } from "../../result/faults.js";
import { goodputLimit } from "../../result/goodput_limit.js";
import type { GraphResult } from "../../result/graph_result.js";
import { groupResults } from "../../result/groups.js";
import { nothingSent } from "../../result/nothing.js";
import { type RecalledResult, recalledReasons } from "../../result/recalled_result.js";
import type { Recorder } from "../../result/recorder.js";
import type { FlowResult, LinkResult, Result } from "../../result/result.js";
import { jainIndex } from "../../result/statistics.js";
import type { Fabric } from "../../scenario/fabric.js";
import type { Flow, Scenario } from "../../scenario/types.js";
import type { SimulationTables } from "./tables.js";

/** Flows with a row of their own in a result. */
const kFlowRows = 1000;
/** Probed queues whose whole distribution a result holds. */
const kDistributions = 64;

export interface SimulationEvidence {
  scenario: Scenario;
  fabric: Fabric;
  completions: Completions;
  /** Time reached, ns. */
  now: number;
  /** Time that was to be reached, ns. */
  until: number;
  counters: SimulationTables;
  /** Counters as they were at the end of the warm-up; undefined when the run did not get there. */
  warm: SimulationTables | undefined;
  /** Lengths of queues that have held anything; `switch` and `port` are numbers of the fabric. */
  queues: (Distribution & { switch: number; port: number; priority: number })[];
  /** Data packets of each flow in the network at the end. */
  underWay: Uint32Array;
  /** Packet descriptors in use at the end. */
  packets: number;
  recorder: Recorder;
  /** States of the scenario's faults, in its order. */
  faults: Parameters<typeof faultResults>[1];
  /** Results of its message graphs; undefined: there are none. */
  graphs: GraphResult[] | undefined;
  /** Why these cannot end; undefined: they have, or may. */
  stuck: string | undefined;
  /** What was skipped; undefined: nothing may be. */
  fastForward: FastForwardResult | undefined;
  /** The same of message graphs: then counters are of what was simulated alone. */
  recalled: RecalledResult | undefined;
}

export function composeResult(evidence: SimulationEvidence): Result {
  const { scenario, counters, now, until } = evidence;
  const facts = runFacts(scenario);
  const { algorithm } = scenario.congestion;
  const ran = Math.min(now, scenario.duration) / 1e9;
  const feedback = feedbackPerSecond(algorithm, counters.allSwitches(), counters.allNics(), ran);
  const limit = goodputLimit(scenario, facts.payload_share);
  const goodputs = scenario.flows.map((_, i) => delivered(evidence, i).goodput);
  const frames = frameAccount(evidence);
  const reasons: string[] = [];
  if (now < until) reasons.push(`stopped at ${formatTime(now)} of ${formatTime(until)}`);
  if (evidence.stuck !== undefined) reasons.push(evidence.stuck);
  if (frames.missing !== 0) reasons.push(`${frames.missing} frames are not accounted for`);
  // Programs are judged by what has become of them.
  const nothing = scenario.programs.length > 0 ? undefined : nothingSent(frames);
  if (nothing !== undefined) reasons.push(nothing);
  if (evidence.fastForward !== undefined) reasons.push(...fastForwardReasons(evidence.fastForward));
  if (evidence.recalled !== undefined) reasons.push(...recalledReasons(evidence.recalled));
  const whole = countsAll(evidence);
  const rows = !whole ? [] : scenario.flows.slice(0, kFlowRows);
  const omitted = scenario.flows.length - rows.length;
  const fct = evidence.completions.result(now);
  const measured = scenario.programs.flatMap(({ id, compute }) => (compute === "free" ? [] : [id]));
  return {
    scenario: scenario.name,
    clock: "sim",
    scale: 1,
    ...facts,
    ...(now < scenario.duration && { until_s: now / 1e9 }),
    ...(happens(scenario) && { events: eventsUntil(scenario, now) }),
    ...(scenario.faults.length > 0 && {
      faults: faultResults(scenario, evidence.faults, evidence.recorder, Math.min(now, scenario.duration)),
    }),
    ...(evidence.fastForward !== undefined && { fast_forward: evidence.fastForward }),
    ...(evidence.recalled !== undefined && { fast_forward_graphs: evidence.recalled }),
    fidelity: {
      valid: reasons.length === 0,
      reasons,
      loop_gap_us: { p50: 0, p99: 0, max: 0 },
      host_drops: 0,
      ...(measured.length > 0 && { varies: [`what programs compute is measured: ${measured.join(", ")}`] }),
    },
    flows: rows.map((flow, i) => resultOf(evidence, flow, i)),
    ...(omitted > 0 && { flows_omitted: omitted }),
    totals: {
      goodput_bps: totalGoodput(evidence, goodputs),
      jain: jainIndex(goodputs),
      ...(whole && feedback !== undefined && { feedback_per_s: feedback }),
      ...(limit !== undefined && { goodput_limit_bps: limit }),
    },
    groups: groupResults(scenario, goodputs, evidence.completions.table),
    ...(fct !== undefined && { fct }),
    ...(evidence.graphs !== undefined && { graphs: evidence.graphs }),
    ...(whole
      ? {
          frames,
          switches: Object.fromEntries(
            scenario.switches.map(({ name }, i) => [name, resultOfSwitch(evidence, name, i)]),
          ),
          nics: Object.fromEntries(
            scenario.hosts.map(({ name }, i) => [name, nicResult(counters.nicAt(i), algorithm, 1)]),
          ),
          links: linkResults(evidence),
          ...(scenario.transport.type === "rc" && { transport: counters.allTransports().byName() }),
        }
      : { switches: {}, nics: {} }),
  };
}

/** Whether devices have counted everything: messages that came from memory have passed none. */
function countsAll({ recalled }: SimulationEvidence): boolean {
  return recalled === undefined || recalled.skipped === 0;
}

/** Account of frames as on the wire; those that were in the network at the end are not missing. */
function frameAccount({ scenario, counters, packets }: SimulationEvidence) {
  const account = accountFrames(counters.allSwitches(), counters.allNics(), {
    links: counters.allLinks(),
    failing: happens(scenario),
  });
  const inNetwork = Math.max(0, Math.min(account.missing, packets));
  return { ...account, in_network: inNetwork, missing: account.missing - inNetwork };
}

interface Delivered {
  bytes: number;
  wireBytes: number;
  seconds: number;
  /** Goodput, bit/s. */
  goodput: number;
}

/**
 * Payload of a flow and the time that it took: after the warm-up for flows without an end, as on the wire; from the first byte to
 * the last for the others, or to where the run ended.
 */
function delivered(evidence: SimulationEvidence, number: number): Delivered {
  const { scenario, counters, warm, completions, now } = evidence;
  const flow = scenario.flows[number] as Flow;
  const ends = hasEnd(flow);
  const last = Math.min(now, flow.stop, scenario.duration);
  const from = ends ? flow.start : Math.max(scenario.warmup, flow.start);
  const to = ends && completions.done(number) ? (completions.latest[number] as number) : last;
  const before = ends ? undefined : warm?.receiverOf(number);
  const receiver = counters.receiverOf(number);
  const grown = (name: string) => receiver.sum(name) - (before?.sum(name) ?? 0);
  const seconds = Math.max(0, to - from) / 1e9;
  const bytes = countsAll(evidence) ? grown("rx_bytes") : completions.bytesOf(number);
  return { bytes, wireBytes: grown("rx_wire_bytes"), seconds, goodput: seconds > 0 ? (bytes * 8) / seconds : 0 };
}

/** Goodput of all flows: those without an end count as on the wire, the others with what arrived after the warm-up, over that time. */
function totalGoodput(evidence: SimulationEvidence, goodputs: readonly number[]): number {
  const { scenario, counters, warm, completions, now } = evidence;
  const seconds = (Math.min(now, scenario.duration) - scenario.warmup) / 1e9;
  return scenario.flows.reduce((sum, flow, i) => {
    if (!hasEnd(flow)) return sum + (goodputs[i] as number);
    if (warm === undefined || seconds <= 0) return sum;
    if (!countsAll(evidence)) return sum + (completions.bytesOf(i) * 8) / seconds;
    const bytes = counters.receiverOf(i).sum("rx_bytes") - warm.receiverOf(i).sum("rx_bytes");
    return sum + (bytes * 8) / seconds;
  }, 0);
}

function resultOf(evidence: SimulationEvidence, flow: Flow, number: number): FlowResult {
  const { counters } = evidence;
  const { bytes, wireBytes, seconds } = delivered(evidence, number);
  const ends = { sender: counters.senderOf(number), receiver: counters.receiverOf(number) };
  return flowResult(flow, evidence.scenario, ends, { bytes, wireBytes }, seconds, evidence.underWay[number]);
}

function resultOfSwitch({ scenario, fabric, counters, queues }: SimulationEvidence, name: string, index: number) {
  const ports = fabric.peers(index).map((peer, port) => [peer, counters.portAt(index, port)] as const);
  const own = queues
    .filter((queue) => queue.switch === index)
    .map((queue) => ({ ...queue, port: ports[queue.port]?.[0] ?? "" }));
  const points = scenario.switches[index]?.qcn.enabled ? ports : undefined;
  const { queue_cdf: _, ...result } = switchResult(counters.switchAt(index), own, points);
  const probes = scenario.probes.queues;
  if (probes.length > kDistributions) return result;
  const probed = own.filter(({ port, priority }) =>
    probes.some((probe) => probe.switch === name && probe.port === port && probe.priority === priority),
  );
  return { ...result, queue_cdf: wholeDistributions(probed) };
}

/** Results of both directions of every link, in the order of the scenario. */
function linkResults({ scenario, fabric, counters, warm, now }: SimulationEvidence): LinkResult[] {
  const end = Math.min(now, scenario.duration);
  const seconds = (end - scenario.warmup) / 1e9;
  return scenario.links.flatMap((link, i) =>
    ([0, 1] as const).map((side): LinkResult => {
      const sent = counters.direction(2 * i + side);
      const grown = warm === undefined ? 0 : sent.sum("wire_bytes") - warm.direction(2 * i + side).sum("wire_bytes");
      const capacity = (link.rate * seconds) / 8;
      return {
        from: side === 0 ? link.from : link.to,
        to: side === 0 ? link.to : link.from,
        rate_bps: link.rate,
        // A frame counts when it begins: the one under way at the end is not over yet.
        utilisation: capacity > 0 ? Math.min(1, grown / capacity) : 0,
        bytes: sent.sum("wire_bytes"),
        packets: sent.sum("frames"),
        lost: sent.of("fault").sum(),
        ...(happens(scenario) && { link_down: sent.of("down").sum() }),
        pause_time_s: pauseTimes(scenario, fabric, counters, i, side),
      };
    }),
  );
}

/** Time for which the sending end of a direction was paused, s, by priority. */
function pauseTimes(
  scenario: Scenario,
  fabric: Fabric,
  counters: SimulationTables,
  link: number,
  side: 0 | 1,
): Record<string, number> {
  const { device, port } = (fabric.ends[link] as Fabric["ends"][number])[side];
  const sender =
    device < scenario.switches.length
      ? counters.portAt(device, port)
      : counters.nicAt(device - scenario.switches.length);
  return Object.fromEntries(
    Object.entries(sender.of("paused").byPriority()).map(([priority, ns]) => [priority, ns / 1e9]),
  );
}
