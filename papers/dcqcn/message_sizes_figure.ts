/** Common parts of the clocks of figure 1: message sizes and the three plots. */

import type { Curve, Plot } from "../../src/result/report/plot.js";
import { plot } from "../engine/study.js";

/** The figure's axis. */
export const SIZES = (["4KB", "16KB", "64KB", "256KB", "1MB", "4MB"] as const).map((name, i) => ({
  name,
  bytes: 4096 * 4 ** i,
}));

/** Message whose latency is measured, bytes. */
export const MESSAGE = 2048;

/** A curve over the sizes, the first ones where it has fewer. */
export interface BySize {
  label: string;
  values: readonly number[];
}

export function throughputPlot(curves: readonly BySize[], levels: Plot["levels"] = []): Plot {
  return bySize("(a) Throughput", "throughput, Gb/s", curves, levels);
}

export function cpuPlot(curves: readonly BySize[]): Plot {
  return bySize("(b) CPU", "% of all cores", curves, []);
}

/** us by operation; those that are not known are left out. */
export function latencyPlot(times: Readonly<Record<string, number | undefined>>): Plot {
  const known = Object.entries(times).filter((entry): entry is [string, number] => entry[1] !== undefined);
  return plot(
    "(c) Latency of 2 KB",
    [""],
    ["latency, us"],
    [{ label: "", kind: "bars", x: known.map((_, x) => x), y: known.map(([, us]) => us) }],
    { x_names: known.map(([label], x) => ({ x, label })) },
  );
}

function bySize(title: string, y_label: string, curves: readonly BySize[], levels: Plot["levels"] = []): Plot {
  const drawn = curves.map(({ label, values }): Curve => ({ label, x: values.map((_, x) => x), y: values }));
  const most = Math.max(...curves.flatMap(({ values }) => values), ...levels.map(({ value }) => value));
  return {
    title,
    x_label: "message size",
    y_label,
    // Each size is four times the one before: equal steps are a logarithmic axis.
    x_names: SIZES.map(({ name }, x) => ({ x, label: name })),
    x_range: [0, SIZES.length - 1],
    y_range: [0, 1.1 * most],
    curves: drawn,
    levels,
  };
}
