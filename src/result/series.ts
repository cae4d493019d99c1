/** Describes the series of a result, for all who draw, thin or tell them: names, units, and how several samples become one. */
import type { Series } from "./result.js";

export interface SeriesField {
  title: string;
  unit: string;
  /** One `unit`, in units of the series. */
  per: number;
  /** Way to make one sample of several: the one at the end, the mean, the highest, or the sum. */
  fold: "last" | "mean" | "max" | "sum";
}

const kCounts = { unit: "in each interval", per: 1, fold: "sum" } as const;

export const kFlowSeries = {
  goodput_bps: { title: "goodput", unit: "Gb/s", per: 1e9, fold: "mean" },
  rate_bps: { title: "rate R_C", unit: "Gb/s", per: 1e9, fold: "last" },
  target_rate_bps: { title: "target rate R_T", unit: "Gb/s", per: 1e9, fold: "last" },
  cwnd_packets: { title: "window", unit: "packets", per: 1, fold: "last" },
  alpha: { title: "alpha", unit: "", per: 1, fold: "last" },
} as const satisfies Record<string, SeriesField>;
export const kQueueSeries = {
  bytes: { title: "queue length", unit: "KB", per: 1000, fold: "last" },
  max_bytes: { title: "highest queue length", unit: "KB", per: 1000, fold: "max" },
} as const satisfies Record<string, SeriesField>;
export const kCountSeries = {
  pauses: { title: "PFC frames sent", ...kCounts },
  marks: { title: "packets marked", ...kCounts },
  cnps: { title: "CNPs sent", ...kCounts },
  cnms: { title: "CNMs sent", ...kCounts },
} as const satisfies Record<string, SeriesField>;

type Of<F extends object> = { [K in keyof F]?: number[] | null | undefined };
type Change = (samples: readonly number[], field: SeriesField, name: string) => number[];

/** Keeps flows, queues and places, and replaces the samples of each by what `change` makes of them. */
export function mapSamples(
  series: Series,
  change: Change,
): Pick<Series, "flows" | "queues" | keyof typeof kCountSeries> {
  const each = <F extends Record<string, SeriesField>>(fields: F, all: Readonly<Record<string, Of<F>>>) =>
    mapValues(all, (own, name) => {
      const known = Object.entries(fields).filter(([field]) => own[field] !== undefined);
      return Object.fromEntries(
        known.map(([field, about]) => {
          const samples = own[field];
          return [field, samples ? change(samples, about, name) : samples];
        }),
      ) as Of<F>;
    });
  const counts = Object.entries(kCountSeries).flatMap(([kind, about]) => {
    const all = series[kind as keyof typeof kCountSeries];
    return all === undefined ? [] : [[kind, mapValues(all, (samples, name) => change(samples, about, name))]];
  });
  return {
    flows: each(kFlowSeries, series.flows),
    queues: each(kQueueSeries, series.queues),
    ...Object.fromEntries(counts),
  } as Series;
}

export function mapValues<T, U>(
  all: Readonly<Record<string, T>>,
  change: (value: T, name: string) => U,
): Record<string, U> {
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, change(value, name)]));
}
