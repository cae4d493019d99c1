/** Data of the charts of a page: results with their series, no more of them than is drawn. */
import { measuredCdf } from "../queue_cdf.js";
import type { Result, Series } from "../result.js";
import type { SavedRun } from "../saved_run.js";
import { mapSamples, mapValues, type SeriesField } from "../series.js";
import { type QueueThresholds, queueThresholds } from "../thresholds.js";

/** One of the runs that a page draws. */
export interface PageRun {
  label: string;
  /** The result, with series. */
  result: Result;
  /** Thresholds by queue ("sw:r:3"). */
  thresholds: Readonly<Record<string, QueueThresholds>>;
}

/** Samples of a curve that a page carries. */
const kSamples = 5000;
/** Digits that can be seen in a chart. */
const kDigits = 5;

/** Leaves out runs without series. */
export function pageRuns(runs: readonly (SavedRun & { label: string })[]): PageRun[] {
  return runs
    .filter(({ series }) => series.time_s.length > 1)
    .map(({ label, result, series, source }) => ({
      label,
      result: { ...drawnOf(result, series), series: thinned(withoutUndrawn(result, series)) },
      thresholds: source === undefined ? {} : queueThresholds(source.scenario, Object.keys(series.queues)),
    }));
}

/** Keeps flows and queues that have samples, and the fields that a result has to have: all figures are in the tables. */
function drawnOf(result: Result, { flows, queues }: Series): Result {
  const { scenario, clock, scale, seed, duration_s, warmup_s, congestion_control, changes, events, fidelity, totals } =
    result;
  const own = (device: string, { queue_cdf = {}, ...one }: Result["switches"][string]) => ({
    ...one,
    queues: {},
    queue_cdf: mapValues(queue_cdf, (priorities, port) =>
      Object.fromEntries(
        Object.entries(priorities).filter(([priority]) => Object.hasOwn(queues, `${device}:${port}:${priority}`)),
      ),
    ),
  });
  return {
    ...{ scenario, clock, scale, seed, duration_s, warmup_s, congestion_control, changes, events, fidelity, totals },
    nics: {},
    flows: result.flows.filter(({ id }) => Object.hasOwn(flows, id)),
    switches: mapValues(result.switches, (one, device) => own(device, one)),
  };
}

/**
 * Leaves out samples that are not drawn: those of queues but the highest lengths, unless their distribution has to come from samples, and
 * counts that stay 0.
 */
function withoutUndrawn(result: Result, series: Series): Series {
  const some = (counts: Series["marks"]) =>
    counts && Object.fromEntries(Object.entries(counts).filter(([, samples]) => samples.some((n) => n > 0)));
  const { pauses, marks, cnps, cnms } = series;
  return {
    ...series,
    queues: mapValues(series.queues, ({ bytes, max_bytes }, name) =>
      max_bytes !== undefined && measuredCdf(result, name) ? { max_bytes } : { bytes, max_bytes },
    ),
    ...{ pauses: some(pauses), marks: some(marks), cnps: some(cnps), cnms: some(cnms) },
  };
}

/** Keeps as many samples as can be told apart, merging ones that follow each other, with as many digits as can be seen. */
export function thinned(series: Series, most = kSamples): Series {
  const step = Math.ceil(series.time_s.length / most);
  const starts = Array.from({ length: Math.ceil(series.time_s.length / step) }, (_, i) => i * step);
  const folded = (samples: readonly number[], fold: SeriesField["fold"], digits = kDigits) =>
    starts.slice(0, Math.ceil(samples.length / step)).map((from) => {
      const own = samples.slice(from, from + step);
      const sum = () => own.reduce((total, value) => total + value, 0);
      const value = { last: () => own.at(-1) ?? 0, mean: () => sum() / own.length, max: () => Math.max(...own), sum };
      return Number(value[fold]().toPrecision(digits));
    });
  return {
    interval_s: series.interval_s * step,
    time_s: folded(series.time_s, "last", 9),
    ...mapSamples(series, (samples, { fold }) => folded(samples, fold)),
  };
}
