/** What a benchmark of `npm run bench` is: a module under bench/ with a name and a run(), which bench/benchmarks.ts lists. */

/** One number, with what it means for a comparison. */
export interface Metric {
  value: number;
  /** As printed: "ns", "kpps", "Gb/s", "us", "%". */
  unit: string;
  /** What is wanted; a metric without it is shown and never judged. */
  better?: "less" | "more";
  /** How far it may be off its baseline by chance, as a fraction; default 0.1. */
  tolerance?: number;
  /** Of the repetitions that `value` is the median of. */
  min?: number;
  max?: number;
}

/** One line of a benchmark's table; the name is unique in it and the same from run to run. */
export interface Row {
  name: string;
  metrics: Record<string, Metric>;
  /** What a reader must know of this line: "generator is the limit". */
  note?: string;
}

export interface BenchOptions {
  /** Seconds, not minutes; figures are rough. */
  quick: boolean;
  /** Rows that are not wanted need not be measured. */
  wants(row: string): boolean;
  /** "name=command" each, of devices under test that are not known here: see bench/dataplane/peers.ts. */
  peers: readonly string[];
}

export interface Benchmark {
  name: string;
  /** For the table's title. */
  title: string;
  /** In a process of its own. Progress goes to standard error. */
  run(options: BenchOptions): Promise<Row[]>;
}
