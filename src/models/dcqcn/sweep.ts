/**
 * The parameter sweeps of section 5.2: figure 11 (convergence of two flows) and figure 12 (length of the queue by g).
 *
 * Figure 11: one flow starts at 40 Gb/s, the other at 0, for 200 ms; what is drawn is the difference of their throughputs, without the first
 * 10 ms. The figures themselves are not in the text; each surface is read from the sentences about it:
 *
 *     byte-counter  11(a)  B from the strawman's 150 KB up to 10 MB, all else the strawman
 *     timer         11(b)  T from the strawman's 1.5 ms down to 55 us, with B = 10 MB, as the text then sets it
 *     kmax          11(c)  Kmax from the strawman's 40 KB (cut-off) up to 200 KB, all else the strawman, so Pmax = 1
 *     pmax          11(d)  Pmax from 1 down to 1%, with Kmax = 200 KB
 *     g             12     g of 1/16 down to 1/1024, 2 and 16 flows that all start at line rate; all else table 14
 *
 * The queue of figure 12 is drawn from the start; its figures are those of the second half of 100 ms.
 */
import { DCQCN_PAPER, DCQCN_STRAWMAN, type DcqcnModelParameters, type FluidFlows } from "./parameters.js";
import { runFluid } from "./run.js";

export const SURFACES = ["byte-counter", "timer", "kmax", "pmax", "g"] as const;
export type SurfaceName = (typeof SURFACES)[number];

type Swept = "rpg_byte_reset" | "rpg_time_reset" | "kmax" | "pmax" | "g";

interface Surface {
  figure: string;
  /** What varies. */
  parameter: Swept;
  base: Readonly<DcqcnModelParameters>;
  /** In base units: bytes, ns, or a part of 1. */
  values: readonly number[];
  /** Counts of flows: 2 with one that starts at 0, or so many that all start at line rate. */
  flows: readonly number[];
  draws: "difference" | "queue";
}

const [KB, MB, us] = [1e3, 1e6, 1e3];
const kSlow = { ...DCQCN_STRAWMAN, rpg_byte_reset: 10 * MB };

export const kSurfaces: Readonly<Record<SurfaceName, Surface>> = {
  "byte-counter": {
    figure: "11(a)",
    parameter: "rpg_byte_reset",
    base: DCQCN_STRAWMAN,
    values: [150, 300, 500, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000].map((n) => n * KB),
    flows: [2],
    draws: "difference",
  },
  timer: {
    figure: "11(b)",
    parameter: "rpg_time_reset",
    base: kSlow,
    values: [1500, 1200, 1000, 800, 600, 500, 400, 300, 250, 200, 150, 100, 75, 55].map((n) => n * us),
    flows: [2],
    draws: "difference",
  },
  kmax: {
    figure: "11(c)",
    parameter: "kmax",
    base: DCQCN_STRAWMAN,
    values: [40, 50, 60, 80, 100, 120, 140, 160, 180, 200].map((n) => n * KB),
    flows: [2],
    draws: "difference",
  },
  pmax: {
    figure: "11(d)",
    parameter: "pmax",
    base: { ...DCQCN_STRAWMAN, kmax: 200 * KB },
    values: [1, 0.8, 0.6, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01],
    flows: [2],
    draws: "difference",
  },
  g: {
    figure: "12",
    parameter: "g",
    base: DCQCN_PAPER,
    values: [1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256, 1 / 512, 1 / 1024],
    flows: [2, 16],
    draws: "queue",
  },
};

/** One run of a sweep. */
export interface SweepPoint {
  surface: SurfaceName;
  value: number;
  flows: number;
}

/** A run's figures, and what is drawn of it. */
export interface SweepOutcome extends SweepPoint {
  /** s */
  time_s: number[];
  /** Of surfaces of differences: |throughput of the first - of the second| in the interval before, bit/s. Of `g`: bytes. */
  drawn: number[];
  /** Of `drawn`: after the first 10 ms; of queues in the second half. */
  mean: number;
  deviation: number;
  least: number;
  most: number;
  end: number;
}

const kSample = { difference: 1e6, queue: 1e5 };
const kHorizon = { difference: 200e6, queue: 100e6 };
const kLeftOut = { difference: 10e6, queue: 50e6 };

/** All points of surfaces; `values`: others than the surfaces' own, for all of them. */
export function sweepPoints(surfaces: readonly SurfaceName[], values?: readonly number[]): SweepPoint[] {
  return surfaces.flatMap((surface) =>
    kSurfaces[surface].flows.flatMap((flows) =>
      (values ?? kSurfaces[surface].values).map((value): SweepPoint => ({ surface, value, flows })),
    ),
  );
}

/** Throws RangeError for a value that the model has no meaning for. */
export function solvePoint(point: SweepPoint): SweepOutcome {
  const { base, parameter, draws } = kSurfaces[point.surface];
  const parameters = { ...base, [parameter]: point.value };
  const line = parameters.bandwidth;
  const flow = (count: number, rate: number): FluidFlows => ({
    count,
    start: 0,
    stop: Number.POSITIVE_INFINITY,
    rate,
    lineRate: line,
    alpha: 1,
  });
  const flows = draws === "difference" ? [flow(1, line), flow(1, 0)] : [flow(point.flows, line)];
  const step = kSample[draws];
  const { series } = runFluid(parameters, flows, { horizon: kHorizon[draws], step });
  const drawn = draws === "queue" ? series.queue : differences(series.delivered as [number[], number[]], step / 1e9);
  const counted = drawn.filter((_, k) => k * step > kLeftOut[draws]);
  const mean = counted.reduce((sum, value) => sum + value, 0) / counted.length;
  return {
    ...point,
    time_s: series.time.map((ns) => ns / 1e9),
    drawn,
    mean,
    deviation: Math.sqrt(counted.reduce((sum, value) => sum + (value - mean) ** 2, 0) / counted.length),
    least: Math.min(...counted),
    most: Math.max(...counted),
    end: drawn.at(-1) as number,
  };
}

/** |throughput - throughput| in the interval before each sample; at the first, what it will be in the next. */
function differences([first, second]: [number[], number[]], seconds: number): number[] {
  const ahead = first.map((bits, k) => bits - (second[k] as number));
  return ahead
    .map((bits, k) => Math.abs(bits - (ahead[k - 1] ?? 0)) / seconds)
    .map((value, k, all) => (k === 0 ? (all[1] ?? value) : value));
}
