// Descriptions of Grafana dashboards: titles, queries, units. scripts/generate-dashboards.ts makes the JSON.

export interface Query {
  expr: string;
  legend: string;
}

export interface Panel {
  title: string;
  description: string;
  /** One of Grafana's units. */
  unit: string;
  queries: readonly Query[];
  /** Shows a number of the moment, and not a time series. */
  stat?: boolean;
  /** Largest value of both axes and all numbers. */
  max?: number;
}

export interface Dashboard {
  uid: string;
  title: string;
  description: string;
  /** Names of labels that can be chosen from, with the metric that has all their values. */
  variables: readonly (readonly [label: string, metric: string])[];
  rows: readonly { title: string; panels: readonly Panel[] }[];
}

export const q = (expr: string, legend: string): Query => ({ expr, legend });
export const rate = (series: string) => `rate(${series}[$__rate_interval])`;
/** A quantile of a histogram, by labels such as "switch, port". */
export const quantile = (value: number, by: string, histogram: string) =>
  q(
    `histogram_quantile(${value}, sum by (${by}, le) (${rate(histogram)}))`,
    `{{${by.split(", ").join("}} {{")}}} ${100 * value}%`,
  );
