/** Congestion controls that a scenario is run under, one after the other: how they are asked for, and the plan of their runs. */
import { basename, extname } from "node:path";
import { WeirError } from "../../base/error.js";
import type { ClockName } from "../../clocks/clock.js";
import { type AlgorithmName, algorithmOf, kAlgorithmNames } from "../../congestion/algorithms.js";
import { loadScenario } from "../../scenario/scenario.js";
import type { Plan } from "../plan.js";
import { planSweep } from "../sweep/plan_sweep.js";
import { type Override, overridesOf } from "../sweep/spec.js";

export interface Contender {
  /** Name by which the user asked for it: "dcqcn", "timely-patched", "dcqcn:hpcc-ns3", "file". */
  label: string;
  /** Replaces the scenario's `congestion`; undefined: that stays. */
  congestion?: { algorithm: AlgorithmName; profile?: string; variant?: string };
}

/** Stands for the scenario's own `congestion`. */
export const kOwn = "file";

/** Algorithms and their variants, by name; a library is a file's own affair. */
const kNames = new Map(
  kAlgorithmNames
    .filter((algorithm) => algorithm !== "library")
    .flatMap((algorithm) => {
      const { variants } = algorithmOf(algorithm);
      const others = (variants?.names ?? []).filter((name) => name !== algorithm);
      return [
        [algorithm, { algorithm }] as const,
        ...others.map((variant) => [variant, { algorithm, variant }] as const),
      ];
    }),
);

/** Contenders by transport, where none are named. */
const kUsual = { stream: "dcqcn,dcqcn:mlx5,none", rc: "dcqcn,timely-patched,swift,dctcp,none" } as const;

/** Returns the usual contenders of the transport: those over connections of `rc` hear acknowledgements, too. @throws ScenarioError */
export function usualContenders(file: string, set: readonly string[]): Contender[] {
  return parseContenders(kUsual[loadScenario(file, { set }).scenario.transport.type]);
}

/** Parses "dcqcn,timely,timely-patched,dcqcn:hpcc-ns3,file". @throws WeirError when one is none, or twice. */
export function parseContenders(text: string): Contender[] {
  const contenders = text.split(",").map((part) => parseContender(part.trim()));
  const labels = contenders.map(({ label }) => label);
  const twice = labels.find((label, i) => labels.indexOf(label) < i);
  if (twice !== undefined) throw new WeirError(`${twice} is named twice`, { hint: "name each once" });
  return contenders;
}

function parseContender(label: string): Contender {
  if (label === kOwn) return { label };
  const [name = "", profile, ...more] = label.split(":");
  const known = kNames.get(name);
  if (known === undefined || more.length > 0) {
    const hint = `use NAME or NAME:PROFILE; names: ${[...kNames.keys()].join(", ")}; ${kOwn}: as the scenario has it`;
    throw new WeirError(`"${label}" is no congestion control`, { hint });
  }
  if (profile === undefined) return { label, congestion: known };
  const profiles = Object.keys(algorithmOf(known.algorithm).profiles ?? {});
  if (!profiles.includes(profile)) {
    const hint = profiles.length > 0 ? `profiles: ${profiles.join(", ")}` : `leave :${profile} out: it has no profiles`;
    throw new WeirError(`"${label}": ${name} has no profile ${profile}`, { hint });
  }
  return { label, congestion: { ...known, profile } };
}

const overrideOf = ({ congestion }: Contender): Override[] =>
  congestion === undefined ? [] : [["congestion", congestion]];

export interface VersusOptions {
  set: readonly string[];
  seeds: number;
  /** Version of the code: see codeVersion(). */
  code: string;
  /** Clocks on all of which each contender runs, in this order. */
  on: readonly ClockName[];
  /** Part by which what runs in virtual time skip may be off; absent: they skip nothing. */
  fast_forward?: number | undefined;
}

/**
 * A run of each contender on each clock with each of `seeds` seeds, from the scenario's own on; points in this order.
 * @throws ScenarioError with what is wrong under which contender.
 */
export function planVersus(
  file: string,
  contenders: readonly Contender[],
  { set, code, ...options }: VersusOptions,
): { plan: Plan; warnings: string[] } {
  const spec = {
    name: basename(file, extname(file)),
    scenario: file,
    set: overridesOf(set),
    axes: ["congestion"],
    combinations: contenders.map(overrideOf),
    labels: contenders.map(({ label }) => label),
    collect: ["totals.goodput_bps"],
    ...{ ...options, series: true },
  };
  return planSweep(spec, file, code);
}
