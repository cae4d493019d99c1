/** `scale: auto`: the smallest scale at which this host carries the scenario, found by short runs of the scenario itself. */

import type { LabEnd } from "../../host/veth.js";
import { Graph } from "../../scenario/topology.js";
import type { Scenario } from "../../scenario/types.js";
import { execute, type LabAddon } from "./execution.js";
import { composeResult, type RunEvidence } from "./outcome.js";

/** Duration of a probe, wall ns. */
const kProbeNs = 1e9;
/** Part of the busier worker's time that a run may need: with the rest it makes up for moments in which it was kept from running. */
export const kMostBusy = 0.6;
/** The same part where the workers have real-time priority, so that other threads cannot keep them from running. */
export const kMostBusyRealTime = 0.75;
/** The search begins at this load: bits per second over all hops, were all senders at line rate. */
const kFirstLoad = 4e9;
const kMostProbes = 8;
const kSaturated = 0.9;
/** Part of a probe's records that may be unread when its traffic ends: with more, a longer run would lose some. */
const kMostUnread = 0.25;
/** A probe that fits is good enough where no more than this could be gained. */
const kWorthwhile = 0.85;

export interface ProbeResult {
  /** Whether its result could be believed. */
  valid: boolean;
  /** Part of the probe's time that the busier worker needed. */
  busy: number;
  /** Part of the time that a run may need. */
  most: number;
}

export interface CalibrationOptions {
  end(link: number, node: string): LabEnd;
  signal: AbortSignal;
}

/**
 * Runs the scenario for a second at one scale after another, on its own links.
 * @throws WeirError when a worker cannot open its ports or fails; the signal's reason.
 */
export async function calibrate(
  addon: LabAddon,
  scenario: Scenario,
  { end, signal }: CalibrationOptions,
): Promise<number> {
  const load = offeredLoad(scenario);
  if (load === 0) return 1;
  return searchScale(load / kFirstLoad, async (scale) => {
    const evidence = await execute(addon, probeOf(scenario, scale), { scale, end, signal, observers: [] });
    signal.throwIfAborted();
    const realTime = evidence.outcomes.every((outcome) => outcome.real_time);
    return {
      valid: composeResult(evidence).fidelity.valid && evidence.unread <= kMostUnread,
      busy: busiest(evidence),
      most: realTime ? kMostBusyRealTime : kMostBusy,
    };
  });
}

/**
 * The smallest scale found at which a probe was valid and its worker not too busy. What a worker has to do is in inverse
 * proportion to the scale, so each probe says where the next one belongs. One that was not busy and not valid is made once again:
 * chance may have spoilt it.
 */
export async function searchScale(first: number, probe: (scale: number) => Promise<ProbeResult>): Promise<number> {
  let scale = twoDigits(first);
  let failed = 0;
  let passed = Number.POSITIVE_INFINITY;
  let again = false;
  for (let i = 0; i < kMostProbes; i++) {
    const { valid, busy, most } = await probe(scale);
    const fitting = twoDigits((scale * busy) / most);
    again = !again && !valid && busy <= most;
    if (again) continue;
    if (valid && busy <= most) {
      passed = scale;
      scale = Math.max(fitting, twoDigits(failed * 1.1));
      if (scale > kWorthwhile * passed) break;
    } else {
      failed = scale;
      // A worker that is busy all the time does not show how much it would have to do; a probe that is not valid does not show how far to
      // go.
      const step = busy > kSaturated ? 2 : valid ? 1.05 : 1.2;
      const between = busy <= most && Number.isFinite(passed);
      scale = Math.max(fitting, twoDigits(between ? Math.sqrt(scale * passed) : scale * step));
      if (scale > kWorthwhile * passed) break;
    }
  }
  return Number.isFinite(passed) ? passed : scale;
}

/** The scenario with all flows at once, as long as a probe takes. */
function probeOf(scenario: Scenario, scale: number): Scenario {
  const duration = Math.ceil(kProbeNs / scale);
  const flows = scenario.flows.map((flow) => ({
    ...flow,
    bytes: undefined,
    sizes: undefined,
    start: 0,
    stop: duration,
  }));
  const changes = scenario.changes.filter(({ at }) => at === 0);
  return { ...scenario, scale, duration, warmup: 0, changes, failures: [], faults: [], flows };
}

function busiest({ outcomes }: RunEvidence): number {
  return Math.max(0, ...outcomes.map(({ busy }) => busy)) / kProbeNs;
}

/** Bits per second over all hops when every sending host sends at line rate. */
export function offeredLoad(scenario: Scenario): number {
  const load = new Map<string, number>();
  const graph = new Graph(scenario);
  for (const flow of scenario.flows) {
    const rate = graph.hostLink(flow.from)?.rate ?? 0;
    const hops = graph.switchesOnPath(flow.from, flow.to);
    load.set(flow.from, Math.max(load.get(flow.from) ?? 0, rate * hops));
  }
  return [...load.values()].reduce((sum, x) => sum + x, 0);
}

/** Rounded up to two digits; at least 1. */
export function twoDigits(scale: number): number {
  if (!(scale > 1)) return 1;
  const step = 10 ** Math.max(0, Math.floor(Math.log10(scale)) - 1);
  return Math.ceil(Number((scale / step).toPrecision(12))) * step;
}
