/**
 * A figure of a paper as it is written down. Each quantity and each trace says how it is read from what a clock has seen, in one place;
 * statements name them, and the compiler knows the names.
 */
import type { Curve, Plot } from "../../src/result/report/plot.js";
import { median } from "../../src/result/statistics.js";
import type {
  Alternative,
  BenchOptions,
  BenchOutcome,
  Check,
  Clock,
  Experiment,
  NetworkClock,
  Observation,
  Quantity,
  QuantityCheck,
  Runs,
  Statement,
  Trace,
  TraceValues,
} from "./experiment.js";

export type { Runs } from "./experiment.js";

/** A quantity, and how it is read; undefined: it is not known on this clock. */
export interface Measured<Seen> extends Quantity {
  of: (seen: Seen) => number | undefined;
}

/** A trace, and how it is read; undefined as there. */
export interface Traced<Seen> extends Trace {
  of: (seen: Seen) => TraceValues | undefined;
}

/** Statements about some of the quantities of such a list. */
export type StatementsOn<List> = readonly Statement<QuantityCheck<NameIn<List>>>[];

type Facts = "id" | "paper" | "place" | "title" | "setup" | "choices" | "alternative";

type Quantities<Seen> = Readonly<Record<string, Measured<Seen>>>;
type Traces<Seen> = Readonly<Record<string, Traced<Seen>>>;
type NameIn<List> = keyof List & string;

/** `Seen`: what any clock shows, and all is read from. */
export interface Study<Seen, Named extends Quantities<Seen>, Drawn extends Traces<Seen>>
  extends Pick<Experiment, Facts> {
  quantities: Named;
  statements: readonly Statement<Check<NameIn<Named>, NameIn<Drawn>>>[];
  traces?: Drawn;
  plots: (seen: Seen) => readonly Plot[];
  network?: Omit<NonNullable<Experiment["network"]>, "observe" | "summarize"> & {
    see: (runs: Runs, clock: NetworkClock) => Seen;
    /** Combines several seeds into what quantities are read from, if a median of each is not meant: a ratio of medians. */
    typical?: (seeds: readonly Seen[]) => Seen;
  };
  model?: (alternative?: Alternative) => Seen | Promise<Seen>;
  bench?: {
    seconds: number;
    run: (options: BenchOptions) => Promise<Omit<BenchOutcome, "observation"> & { seen: Seen }>;
  };
}

/** Makes experiments that are read from `Seen`. */
export function studyOf<Seen>() {
  return <Named extends Quantities<Seen>, Drawn extends Traces<Seen>>(study: Study<Seen, Named, Drawn>): Experiment => {
    const { quantities, traces, plots, network, model, bench, ...facts } = study;
    const observe = (seen: Seen) => ({
      values: read(quantities, seen),
      plots: plots(seen),
      ...(traces && { traces: read(traces, seen) }),
    });
    return {
      ...facts,
      quantities: without(quantities),
      ...(traces && { traces: without(traces) }),
      ...(network && { network: networkOf(network, observe) }),
      ...(model && { model: async (alternative) => observe(await model(alternative)) }),
      ...(bench && {
        bench: {
          ...bench,
          run: async (options) => {
            const { seen, ...outcome } = await bench.run(options);
            return { ...outcome, observation: observe(seen) };
          },
        },
      }),
    };
  };
}

function networkOf<Seen>(
  { see, typical, ...facts }: NonNullable<Study<Seen, Quantities<Seen>, Traces<Seen>>["network"]>,
  observe: (seen: Seen) => Observation,
): NonNullable<Experiment["network"]> {
  // Runs are large: of each seed what was seen is kept, and not the runs.
  const sights = new WeakMap<Observation, Seen>();
  return {
    ...facts,
    observe: (runs, clock) => {
      const seen = see(runs, clock);
      const observation = observe(seen);
      if (typical) sights.set(observation, seen);
      return observation;
    },
    ...(typical && { summarize: (seeds) => observe(typical(seeds.map((one) => sights.get(one) as Seen))) }),
  };
}

type Readings<Seen, Value> = Readonly<Record<string, { of: (seen: Seen) => Value | undefined }>>;

function read<Seen, Value>(all: Readings<Seen, Value>, seen: Seen): Record<string, Value> {
  const found = Object.entries(all).map(([name, { of }]) => [name, of(seen)] as const);
  return Object.fromEntries(found.filter((one): one is [string, Value] => one[1] !== undefined));
}

/** Describes all without how they are read. */
function without<About extends { of: unknown }>(all: Readonly<Record<string, About>>) {
  return Object.fromEntries(Object.entries(all).map(([name, { of, ...about }]) => [name, about]));
}

export function quantity<Seen>(label: string, unit: string, of: (seen: Seen) => number | undefined): Measured<Seen> {
  return { label, unit, of };
}

/** Case that a figure measures again and again: a name, or something that has one. */
type Case = string | number | { readonly name: string | number };
type CaseName<One> = One extends { readonly name: infer Name extends string | number } ? Name : One & (string | number);

interface Named<Figure extends string, One extends string | number> {
  figure: Figure;
  one: One;
}

/**
 * The same quantities of each of some cases: `figure_case`. `at` gives what they are read from (undefined: there is no such case on this
 * clock), `label` their label, from that of the figure; `name` is theirs where it is another.
 */
export function grid<Seen, One extends Case, Read>(
  cases: readonly One[],
  at: (seen: Seen, one: One) => Read | undefined,
  label: (figure: string, one: One) => string,
) {
  return <Figures extends Quantities<Read>, Name extends string = `${NameIn<Figures>}_${CaseName<One>}`>(
    figures: Figures,
    name?: (of: Named<NameIn<Figures>, CaseName<One>>) => Name,
  ): Record<Name, Measured<Seen>> => {
    const all = cases.flatMap((one) =>
      namesOf(figures).map((figure) => {
        const { label: own, unit, of } = figures[figure] as Measured<Read>;
        const read = (seen: Seen) => {
          const found = at(seen, one);
          return found === undefined ? undefined : of(found);
        };
        const key = (typeof one === "object" ? one.name : one) as CaseName<One>;
        return [name?.({ figure, one: key }) ?? `${figure}_${key}`, quantity(label(own, one), unit, read)] as const;
      }),
    );
    return Object.fromEntries(all) as Record<Name, Measured<Seen>>;
  };
}

/** Other names in a grid: `case_figure`, and `figure-case`. */
export const caseFirst = <F extends string, One extends string | number>({ figure, one }: Named<F, One>) =>
  `${one}_${figure}` as const;
export const dashed = <F extends string, One extends string | number>({ figure, one }: Named<F, One>) =>
  `${figure}-${one}` as const;

/** A statement in one line. */
export function statement<const Held extends Check>(
  quote: string,
  where: string,
  reading: string,
  checks: readonly Held[],
  remark?: string,
  cause?: Statement["cause"],
): Statement<Held> {
  return { quote, where, reading, checks, ...(remark !== undefined && { remark }), ...(cause && { cause }) };
}

/** Medians of numbers by name. */
export function mediansOf<Name extends string>(all: readonly Readonly<Record<Name, number>>[]): Record<Name, number> {
  const names = namesOf(all[0] as Readonly<Record<Name, number>>);
  return byName(names, (name) => median(all.map((one) => one[name])));
}

/** Bounds are inclusive. */
export const atLeast = <Name extends string>(quantity: Name, min: number): QuantityCheck<Name> => ({ quantity, min });
export const atMost = <Name extends string>(quantity: Name, max: number): QuantityCheck<Name> => ({ quantity, max });
export const within = <Name extends string>(quantity: Name, min: number, max: number): QuantityCheck<Name> => ({
  quantity,
  min,
  max,
});

/** Meaning of `more` and `less` for a ratio. */
export const MORE_OR_LESS =
  "More and less: by 1% where equations leave no room for chance, by 10% where the median of several seeds is judged.";
export const more = <Name extends string>(ratio: Name): QuantityCheck<Name> => ({
  quantity: ratio,
  min: 1.01,
  by_chance: { min: 1.1 },
});
export const less = <Name extends string>(ratio: Name): QuantityCheck<Name> => ({
  quantity: ratio,
  max: 0.99,
  by_chance: { max: 0.9 },
});

/** Checks for a largest distance from the value on another clock: a share of it, or `margin` in the unit, whichever is more. */
export const near = <Name extends string>(
  quantity: Name,
  clock: Clock,
  within: number,
  margin = 0,
): QuantityCheck<Name> => ({ quantity, near: { clock, within, margin } });

/** Label of an axis, and its ends; default: those of the curves. */
export type Axis = readonly [label: string, from?: number, to?: number];

export function plot(
  title: string,
  [x_label, x_from, x_to]: Axis,
  [y_label, y_from, y_to]: Axis,
  curves: readonly Curve[],
  more: Pick<Plot, "levels" | "marks" | "x_names"> = {},
): Plot {
  return {
    title,
    x_label,
    y_label,
    ...(x_from !== undefined && x_to !== undefined && { x_range: [x_from, x_to] }),
    ...(y_from !== undefined && y_to !== undefined && { y_range: [y_from, y_to] }),
    curves,
    ...more,
  };
}

/** A trace over a part of its x axis; of y the label and the unit. */
export function trace<Seen>(
  title: string,
  [x_label, from, to]: Required<Axis>,
  [label, unit]: readonly [label: string, unit: string],
  of: (seen: Seen) => TraceValues | undefined,
): Traced<Seen> {
  const y_label = unit === "" ? label : `${label}, ${unit}`;
  return { title, x_label, y_label, unit, x_range: [from, to], of };
}

/** One of something for each name. */
export function byName<Name extends string | number, Value>(
  names: readonly Name[],
  make: (name: Name) => Value,
): Record<Name, Value> {
  return Object.fromEntries(names.map((name) => [name, make(name)])) as Record<Name, Value>;
}

/** The names of an object that has no others. */
export function namesOf<Name extends string>(all: Readonly<Record<Name, unknown>>): Name[] {
  return Object.keys(all) as Name[];
}
