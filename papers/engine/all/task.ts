/** Choice of the experiments that `weir paper all` runs, their clocks, and what their outcomes depend on. */
import { WeirError } from "../../../src/base/error.js";
import { nearest } from "../../../src/base/nearest.js";
import { type Clock, clocksOf, type Experiment } from "../experiment.js";
import { keyOf } from "../made.js";
import type { References } from "../reference.js";
import { planRuns, type RunsPlan } from "../runs.js";

/** One experiment to run. */
export interface Task {
  experiment: Experiment;
  clocks: readonly Clock[];
  references: References;
  /** See Made. */
  key: string;
  /** Rough time that it takes, s. */
  seconds: number;
}

export interface TaskOptions {
  clocks: readonly Clock[];
  /** Clocks that were asked for by name: someone must have each. */
  named: boolean;
  seed?: number | undefined;
  scale?: number | undefined;
  references: ReadonlyMap<string, References>;
  /** See codeVersion(). */
  weir: string;
  seconds: (experiment: Experiment, clock: Clock) => number;
}

export interface TaskPlan {
  tasks: Task[];
  /** What all of them need, each experiment in a folder of its own. */
  plan: RunsPlan;
}

/** Those whose id is one of `patterns`, in which * stands for any text. @throws WeirError for one that nothing is meant by. */
export function selectExperiments(all: readonly Experiment[], patterns: readonly string[]): Experiment[] {
  if (patterns.length === 0) return [...all];
  const chosen = patterns.map((pattern) => {
    const parts = pattern.split("*").map((part) => part.replace(/[^\w-]/g, "\\$&"));
    const expression = new RegExp(`^${parts.join(".*")}$`);
    const found = all.filter(({ id }) => expression.test(id));
    if (found.length > 0) return found;
    const ids = all.map(({ id }) => id);
    const meant = nearest(pattern, ids);
    throw new WeirError(`no experiment ${pattern}`, {
      hint: meant === undefined ? "weir paper list shows all" : `did you mean ${meant}?`,
    });
  });
  return all.filter((experiment) => chosen.some((found) => found.includes(experiment)));
}

/** A task for each experiment that has any of the clocks. @throws WeirError, ScenarioError */
export function planTasks(chosen: readonly Experiment[], options: TaskOptions): TaskPlan {
  const { clocks: wanted, named, references, weir, seconds, ...overrides } = options;
  const missing = wanted.find((clock) => !chosen.some((experiment) => clocksOf(experiment).includes(clock)));
  if (named && missing !== undefined) {
    throw new WeirError(`none of the experiments runs on ${missing}`, { hint: "weir paper list shows what each has" });
  }
  const some = chosen.flatMap((experiment) => {
    const clocks = clocksOf(experiment).filter((clock) => wanted.includes(clock));
    return clocks.length === 0 ? [] : [{ experiment, clocks }];
  });
  const plan = planRuns(some, { ...overrides, code: weir, folders: true });
  const tasks = some.map(({ experiment, clocks }) => {
    const own = references.get(experiment.id) ?? {};
    return {
      experiment,
      clocks,
      references: own,
      key: keyOf(experiment, plan, { clocks, references: own, weir }),
      seconds: clocks.reduce((sum, clock) => sum + seconds(experiment, clock), 0),
    };
  });
  return { tasks, plan };
}
