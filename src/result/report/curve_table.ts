/** The curves of a page for readers without the picture. */
import type { Series } from "../result.js";
import { mapSamples } from "../series.js";
import { summarize } from "../statistics.js";
import { fixed } from "./format.js";
import type { Grid } from "./table.js";

/** Figures of each curve, over all samples. */
export function curveGrid(runs: readonly { label?: string; series: Series }[]): Grid {
  const rows: string[][] = [];
  for (const { label, series } of runs) {
    mapSamples(series, (samples, { title, unit, per, fold }, name) => {
      if (samples.length > 0 && (fold !== "sum" || samples.some((n) => n > 0))) {
        const { mean, p50, p95, p99, max } = summarize(samples);
        const figures = [mean, p50, p95, p99, max].map((value) => fixed(value / per));
        rows.push([...(label === undefined ? [] : [label]), name, `${title}${unit && `, ${unit}`}`, ...figures]);
      }
      return [];
    });
  }
  const named = runs.some(({ label }) => label !== undefined);
  return {
    title: "Figures of the curves",
    head: [...(named ? ["run"] : []), "of", "what", "mean", "p50", "p95", "p99", "max"],
    names: named ? 3 : 2,
    rows,
  };
}
