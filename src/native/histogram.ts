/** A distribution of a running worker: of ns or bytes, counted once, or by the ns that they lasted (queue_length). */
export interface NativeHistogram {
  name: "loop_gap" | "ecn_to_cnp" | "cnp_to_rate_change" | "queue_length";
  labels: Record<string, string>;
  /** below[i]: how much lies below 2^(first + i). */
  first: number;
  below: number[];
  total: number;
  /** Of all values, each by its weight. */
  sum: number;
}

/** A worker that tells of its distributions while it runs. */
export interface HistogramSource {
  /** Empty before devices live. */
  histograms(): NativeHistogram[];
}
