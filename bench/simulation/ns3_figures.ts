/** The figures of an incast run that the two ns-3 simulators were measured by: see docs/evidence/ns3.md. */
import { mean, sum } from "simple-statistics";
import { runSimulation } from "../../src/clocks/sim/run.js";
import type { SimulationAddon } from "../../src/native/simulation_types.js";
import type { Result, Series } from "../../src/result/result.js";
import { jainIndex } from "../../src/result/statistics.js";
import { loadScenario } from "../../src/scenario/scenario.js";

/** Rates in Gb/s, queue lengths in bytes. "Last half": from the end of the warm-up. */
export interface IncastFigures {
  /** Goodput of the last half. */
  goodput: number;
  /** Part of the bottleneck that was used in the last half. */
  share: number;
  flowMin: number;
  flowMax: number;
  /** Jain's index of the last half's goodputs, and the mean of that of each of its milliseconds. */
  jain: number;
  jain1ms: number;
  /** The bottleneck's queue in the last half, and its maximum over the whole run. */
  queue: { mean: number; p50: number; p95: number; p99: number; max: number };
  queueMaxWhole: number;
  /** Counts of the whole run. A pause is an XOFF after an XON; `resumes` are all other PFC frames. */
  pauses: number;
  resumes: number;
  marks: number;
  cnps: number;
  /** Samples at which the current or the target rate was lower than before: cuts, if sampled often enough. */
  cuts: number;
  drops: number;
}

const kSwitch = "sw";
const kReceiver = "h1";
const kPriority = "3";
const kQueue = `${kSwitch}:${kReceiver}:${kPriority}`;

/**
 * Runs a file of examples/ns3 in virtual time. `set` overrides it as the command line's --set does.
 * @throws WeirError for what is wrong with the file or the overrides.
 */
export async function runIncast(file: string, set: readonly string[], seed: number, addon?: SimulationAddon) {
  const { scenario } = loadScenario(file, { set: [...set, `seed=${seed}`] });
  const { result, series } = await runSimulation(scenario, { signal: new AbortController().signal }, addon);
  if (!result.fidelity.valid) throw new Error(`${file}: ${result.fidelity.reasons.join("; ")}`);
  return { result, series, figures: incastFigures(result, series) };
}

/** Settings that make the one bottleneck of a file of examples/ns3 have `senders` senders. */
export function senders(file: string, count: number): string[] {
  const star = [`topology.hosts=${count + 1}`, `traffic.0.degree=${count}`];
  // ns3-rdma keeps headroom on top of its shared pool of 4.12 MB: 103 KB for each port and priority.
  return file.includes("ns3-rdma") ? [...star, `switch.buffer.total=${4_120_000 + (count + 1) * 8 * 103_000}`] : star;
}

export function incastFigures(result: Result, series: Series): IncastFigures {
  const device = result.switches[kSwitch];
  const queue = device?.queues[kReceiver]?.[kPriority];
  const bottleneck = result.links?.find(({ from, to }) => from === kSwitch && to === kReceiver);
  if (device === undefined || queue === undefined || bottleneck === undefined) throw new Error("not an incast to h1");
  const goodputs = result.flows.map(({ goodput_bps }) => goodput_bps / 1e9);
  const pauses = sum(Object.values((device as { pauses?: Record<string, number> }).pauses ?? {}));
  return {
    goodput: result.totals.goodput_bps / 1e9,
    share: bottleneck.utilisation,
    flowMin: Math.min(...goodputs),
    flowMax: Math.max(...goodputs),
    jain: result.totals.jain,
    jain1ms: mean(milliseconds(series, result.warmup_s ?? 0).map((rates) => jainIndex(rates))),
    queue,
    queueMaxWhole: Math.max(...(series.queues[kQueue]?.max_bytes ?? [])),
    pauses,
    resumes: sum(Object.values(device.pfc_sent)) - pauses,
    marks: device.ecn_marked,
    cnps: result.nics[kReceiver]?.np_cnp_sent ?? 0,
    cuts: sum(
      Object.values(series.flows).map(({ rate_bps = [], target_rate_bps = [] }) =>
        countCuts(rate_bps, target_rate_bps),
      ),
    ),
    drops: sum(Object.values(device.drops)),
  };
}

/** Goodput of each flow, bit/s, in each whole millisecond from `from` s on. The sampling interval must divide 1 ms. */
export function milliseconds(series: Series, from = 0): number[][] {
  const perMs = Math.round(1e-3 / series.interval_s);
  const flows = Object.values(series.flows).map(({ goodput_bps = [] }) => goodput_bps);
  const rows: number[][] = [];
  for (let i = 0; i + perMs < series.time_s.length; i += perMs) {
    // Samples are of the interval before them; the first is at 0.
    if ((series.time_s[i] ?? 0) < from - series.interval_s / 2) continue;
    rows.push(flows.map((samples) => mean(samples.slice(i + 1, i + 1 + perMs))));
  }
  return rows;
}

/** Milliseconds after the `since`-th until one in which all flows together reached `goodput` bit/s; NaN if none did. */
export function refillMs(series: Series, goodput: number, since: number): number {
  const at = milliseconds(series).findIndex((flows, i) => i >= since && sum(flows) >= goodput);
  return at < 0 ? Number.NaN : at + 1 - since;
}

/** A rate of 0 is that of a flow that does not send. */
function countCuts(rates: readonly number[], targets: readonly number[]): number {
  const fell = (samples: readonly number[], i: number) => (samples[i] ?? 0) < (samples[i - 1] ?? 0);
  return rates.filter((rate, i) => rate > 0 && (fell(rates, i) || fell(targets, i))).length;
}
