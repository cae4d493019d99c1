/**
 * Makes a result of a run of the equations, for `weir compare` beside wire and sim.
 *
 * Rates are fluid: packets, marks and CNPs are expected numbers, rounded. The model's own figures are in `model`: fixed point, tau*,
 * longest queue. There are no frames to account for, no pauses, and nothing is lost.
 */
import { setImmediate as turn } from "node:timers/promises";
import { formatTime } from "../base/units.js";
import { dcqcnFixedPoint } from "../models/dcqcn/fixed_point.js";
import { type FlowSums, FluidRun, type FluidSeries } from "../models/dcqcn/run.js";
import { type ModelledScenario, modelScenario } from "../models/dcqcn/scenario.js";
import { runFacts } from "../result/device_results.js";
import { goodputLimit } from "../result/goodput_limit.js";
import type { FlowResult, NicResult, Result, Series } from "../result/result.js";
import { jainIndex, summarizeWeighted } from "../result/statistics.js";
import type { Scenario } from "../scenario/types.js";
import { kHeaderBytes } from "../wire/frame_size.js";
import type { Outcome, RunOptions } from "./clock.js";

export interface ModelOptions extends RunOptions {
  /** tau*, ns; default: CNP interval and propagation. */
  delay?: number | undefined;
}

/** Points of a queue's distribution. */
const kDistribution = 200;
/** Parts of the duration between two looks at signals. */
const kSlices = 100;

/** Solves the equations for a scenario. Throws ScenarioError for scenarios that they cannot describe. */
export async function runModel(scenario: Scenario, options: ModelOptions): Promise<Outcome> {
  const modelled = modelScenario(scenario, options.delay);
  const { duration, warmup, probes } = scenario;
  const run = new FluidRun(modelled.parameters, modelled.classes, { horizon: duration, step: probes.interval, warmup });
  for (let slice = 1; slice <= kSlices && !options.signal.aborted; slice++) {
    run.advance(Math.round((duration * slice) / kSlices));
    options.onProgress?.({ done: slice / kSlices });
    await turn();
  }
  return { ...compose(scenario, modelled, run), flowTable: [], complete: run.done };
}

function compose(scenario: Scenario, modelled: ModelledScenario, run: FluidRun): { result: Result; series: Series } {
  const { now } = run;
  const facts = runFacts(scenario);
  const share = (modelled.parameters.queued - kHeaderBytes) / modelled.parameters.packet;
  const flows = scenario.flows.map((_, i) => flowResult(scenario, modelled, run, i, share));
  const goodputs = flows.map(({ goodput_bps }) => goodput_bps);
  const limit = goodputLimit(scenario, share);
  const reasons = run.done ? [] : [`stopped at ${formatTime(now)} of ${formatTime(scenario.duration)}`];
  const result: Result = {
    scenario: scenario.name,
    clock: "model",
    scale: 1,
    ...facts,
    ...(run.done ? {} : { until_s: now / 1e9 }),
    fidelity: { valid: run.done, reasons, loop_gap_us: { p50: 0, p99: 0, max: 0 }, host_drops: 0 },
    flows,
    totals: {
      goodput_bps: goodputs.reduce((sum, one) => sum + one, 0),
      jain: jainIndex(goodputs),
      ...(limit !== undefined && { goodput_limit_bps: limit }),
    },
    switches: { [modelled.switch]: switchResult(modelled, run) },
    nics: nicResults(scenario, flows),
    model: {
      delay_us: modelled.parameters.delay / 1e3,
      longest_queue_bytes: run.longest,
      fixed_point: fixedPointOf(modelled),
    },
  };
  return { result, series: seriesOf(scenario, modelled, run.series, share) };
}

/** Fixed point of all flows together if their links do not hold them back; else null. */
function fixedPointOf({ parameters, classes }: ModelledScenario): NonNullable<Result["model"]>["fixed_point"] {
  const flows = classes.reduce((sum, { count }) => sum + count, 0);
  const point = dcqcnFixedPoint(parameters, flows);
  return classes.every(({ lineRate }) => point.target_rate_bps <= lineRate) ? { ...point } : null;
}

function flowResult(
  scenario: Scenario,
  { classOf }: ModelledScenario,
  run: FluidRun,
  number: number,
  share: number,
): FlowResult {
  const { id, from, to, priority, start, stop } = scenario.flows[number] as Scenario["flows"][number];
  const own = classOf[number] as number;
  const sums = run.sums[own] as FlowSums;
  const seconds = (Math.min(run.now, stop, scenario.duration) - Math.max(scenario.warmup, start)) / 1e9;
  const wire = seconds > 0 ? sums.deliveredAfterWarmup / seconds : 0;
  const cnps = Math.round(sums.cnps);
  return {
    id,
    from,
    to,
    priority,
    goodput_bps: wire * share,
    wire_bps: wire,
    packets: Math.round(sums.packets),
    lost: 0,
    ecn_marked: Math.round(sums.marks),
    cnp_sent: cnps,
    cnp_handled: cnps,
  };
}

function switchResult(
  { receiver, priority }: ModelledScenario,
  { lengths, weights, series }: FluidRun,
): Result["switches"][string] {
  return {
    drops: {},
    ecn_marked: Math.round(series.marks.at(-1) ?? 0),
    pfc_sent: {},
    pfc_received: {},
    queues: { [receiver]: { [priority]: { ...summarizeWeighted(lengths, weights) } } },
    queue_cdf: { [receiver]: { [priority]: distribution(lengths, weights) } },
  };
}

/** [bytes, part of the time at or below], at equal parts of the time. */
function distribution(lengths: readonly number[], weights: readonly number[]): [number, number][] {
  const order = lengths.map((_, i) => i).sort((a, b) => (lengths[a] as number) - (lengths[b] as number));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const points: [number, number][] = [];
  let below = 0;
  for (const [place, i] of order.entries()) {
    below += weights[i] as number;
    const last = place === order.length - 1;
    if (last || below / total >= (points.length + 1) / kDistribution)
      points.push([lengths[i] as number, last ? 1 : below / total]);
  }
  return points;
}

function nicResults(scenario: Scenario, flows: readonly FlowResult[]): Record<string, NicResult> {
  const sum = (of: (flow: (typeof flows)[number]) => boolean) =>
    flows.filter(of).reduce((total, { cnp_sent = 0 }) => total + cnp_sent, 0);
  return Object.fromEntries(
    scenario.hosts.map(({ name }): [string, NicResult] => [
      name,
      {
        np_cnp_sent: sum(({ to }) => to === name),
        rp_cnp_handled: sum(({ from }) => from === name),
        pfc_received: {},
      },
    ]),
  );
}

function seriesOf(
  scenario: Scenario,
  modelled: ModelledScenario,
  { time, rates, targets, alphas, delivered, queue, longest, marks, cnps }: FluidSeries,
  share: number,
): Series {
  const interval = scenario.probes.interval / 1e9;
  const growth = (list: readonly number[]) => list.map((value, k) => (k === 0 ? 0 : value - (list[k - 1] as number)));
  const name = `${modelled.switch}:${modelled.receiver}:${modelled.priority}`;
  return {
    interval_s: interval,
    time_s: time.map((ns) => ns / 1e9),
    flows: Object.fromEntries(
      scenario.flows.slice(0, scenario.probes.flows).map(({ id }, i) => {
        const own = modelled.classOf[i] as number;
        return [
          id,
          {
            rate_bps: rates[own],
            target_rate_bps: targets[own],
            alpha: alphas[own],
            goodput_bps: growth(delivered[own] as number[]).map((bits) => (bits * share) / interval),
          },
        ];
      }),
    ),
    queues: { [name]: { bytes: queue, max_bytes: longest } },
    cnps: { [modelled.receiver]: growth(cnps) },
    marks: { [name]: growth(marks) },
  };
}
