/** What happened to a network, what has become of a scenario's faults, and how long the traffic took to recover. */
import type { FaultState } from "../native/reports.js";
import { networkEvents } from "../scenario/failures.js";
import { endOfFault } from "../scenario/faults.js";
import type { Fault, Scenario } from "../scenario/types.js";
import type { Recorder } from "./recorder.js";
import type { Result } from "./result.js";

/** Whether anything may happen to the network. */
export const happens = ({ failures, faults }: Scenario): boolean => failures.length > 0 || faults.length > 0;

/** What happened to the network up to a time. */
export function eventsUntil(scenario: Scenario, now: number): NonNullable<Result["events"]> {
  return networkEvents(scenario)
    .filter(({ at }) => at <= now)
    .map(({ at, what }) => ({ at_s: at / 1e9, what }));
}

/** Part of the goodput before a fault that counts as recovery. */
export const kRecovered = 0.9;

/** @param states By the scenario's faults; undefined: another part's. @param end End of the run, meant ns. */
export function faultResults(
  scenario: Scenario,
  states: readonly (Pick<FaultState, "matched" | "hits"> | undefined)[],
  recorder: Pick<Recorder, "delivered" | "flows">,
  end: number,
): NonNullable<Result["faults"]> {
  return scenario.faults.flatMap((fault, i) => {
    const state = states[i];
    if (state === undefined || fault.at >= end) return [];
    const recovery = recoveryTime(scenario, fault, recorder, end);
    return {
      device: fault.device,
      ...(fault.port !== undefined && { port: fault.port }),
      ...(fault.direction === "out" && { direction: "out" as const }),
      kind: fault.kind,
      at_s: fault.at / 1e9,
      ...(fault.for !== undefined && { for_s: fault.for / 1e9 }),
      matched: state.matched,
      hits: state.hits,
      ...(recovery !== undefined && { recovery_s: recovery / 1e9 }),
    };
  });
}

/**
 * Time from the end of a fault (of one without, from its beginning) to the first interval of the series whose goodput is kRecovered of
 * that before the fault, of all flows with series together; undefined: there was none, before it or after it.
 */
function recoveryTime(
  { warmup, probes }: Scenario,
  fault: Fault,
  recorder: Pick<Recorder, "delivered" | "flows">,
  end: number,
) {
  const goodput = (from: number, to: number) =>
    [...recorder.flows.keys()].reduce((sum, id) => sum + recorder.delivered(id, from, to).bytes, 0) / (to - from);
  const since = fault.at > warmup ? warmup : 0;
  const before = fault.at > since ? goodput(since, fault.at) : 0;
  if (before === 0) return undefined;
  const over = Number.isFinite(endOfFault(fault)) ? endOfFault(fault) : fault.at;
  for (let at = over; at + probes.interval <= end; at += probes.interval) {
    if (goodput(at, at + probes.interval) >= kRecovered * before) return at - over;
  }
  return undefined;
}
