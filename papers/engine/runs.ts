/** The runs of scenarios that experiments need, as points of a plan: what is done once is not run again, whoever needs it. */
import { readFileSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import { readScenarioText } from "../../src/base/yaml.js";
import { fileReferences, readReferenced } from "../../src/scenario/file_references.js";
import { kDefaultSeed } from "../../src/scenario/schema.js";
import { idOf, inputOf, type Plan, type PlannedScenario, type Point } from "../../src/study/plan.js";
import { overridesOf } from "../../src/study/sweep/spec.js";
import {
  type Alternative,
  type Clock,
  type Experiment,
  type NetworkClock,
  repeatName,
  seedsOn,
  type Trial,
  trialsOn,
} from "./experiment.js";
import { loadTrial, type Overrides, overridesOn, trialInput } from "./trial.js";

/** One run of a trial. */
export interface PlannedRun {
  experiment: string;
  clock: NetworkClock;
  /** The trial, and which of its seeds where there are several. */
  trial: string;
  /** Name of the alternative that it is of. */
  alternative?: string;
  point: Point;
}

export interface RunsPlan extends Plan {
  runs: PlannedRun[];
}

export interface RunsOptions extends Overrides {
  /** See codeVersion(). */
  code: string;
  /** Each experiment has a folder of its own in that of the results. */
  folders: boolean;
}

interface Wanted {
  experiment: Experiment;
  clocks: readonly Clock[];
}

/** Plans every run that the experiments need on their clocks. @throws WeirError for a scenario that cannot be read */
export function planRuns(wanted: readonly Wanted[], options: RunsOptions): RunsPlan {
  const scenarios = new Scenarios(options.code);
  const runs = wanted.flatMap(({ experiment, clocks }) =>
    clocks.flatMap((clock) => (clock === "model" ? [] : runsOn(experiment, clock, scenarios, options))),
  );
  const numbered = runs.map(({ point, ...run }, index): PlannedRun => ({ ...run, point: { index, ...point } }));
  const [only] = wanted;
  return {
    study: {
      weir_sweep: 2,
      name: wanted.length === 1 && only ? only.experiment.id : "papers",
      code: options.code,
      points: numbered.length,
      axes: [],
      collect: [],
      scenarios: scenarios.all,
      series: true,
    },
    points: numbered.map(({ point }) => point),
    runs: numbered,
  };
}

type Unnumbered = Omit<PlannedRun, "point"> & { point: Omit<Point, "index"> };

function runsOn(experiment: Experiment, clock: NetworkClock, scenarios: Scenarios, options: RunsOptions): Unnumbered[] {
  const seeds = seedsOn(experiment, clock);
  const trials = trialsOn(experiment, clock);
  const overrides = overridesOn(clock, options);
  // Real frames run under the first reading alone.
  const other = clock === "sim" ? experiment.alternative : undefined;
  const concerned = trials.filter((trial) => other?.concerns(loadTrial(trial, overrides).scenario));
  const run = (trial: Trial, repeat: number, alternative?: Alternative): Unnumbered => {
    const name = seeds > 1 ? repeatName(trial.name, repeat + 1) : trial.name;
    const path = [clock, ...(alternative === undefined ? [] : [alternative.name.replaceAll(" ", "-")]), name];
    return {
      experiment: experiment.id,
      clock,
      trial: name,
      ...(alternative !== undefined && { alternative: alternative.name }),
      point: {
        ...scenarios.point(clock, { ...trial, set: [...trial.set, ...(alternative?.set ?? [])] }, overrides, repeat),
        folder: join(...(options.folders ? [experiment.id] : []), ...path),
      },
    };
  };
  return Array.from({ length: seeds }, (_, repeat) => [
    ...trials.map((trial) => run(trial, repeat)),
    ...concerned.map((trial) => run(trial, repeat, other)),
  ]).flat();
}

/** The scenarios of a plan, each once, and what points of them are called. */
class Scenarios {
  readonly all: PlannedScenario[] = [];
  /** Where each is from. */
  private readonly paths: string[] = [];
  /** Data of scenarios with overrides, which all seeds have in common. */
  private readonly inputs = new Map<string, { input: ReturnType<typeof inputOf>; seed: number }>();

  constructor(private readonly code: string) {}

  /** The point of a trial with the `repeat`th of its seeds, from 0. */
  point(clock: NetworkClock, trial: Trial, overrides: Overrides, repeat: number): Omit<Point, "index" | "folder"> {
    const { path, set } = trialInput(trial, overrides);
    const position = this.position(path);
    const key = JSON.stringify([clock, position, set]);
    const { seed: _, ...values } = Object.fromEntries(overridesOf(set));
    const { input, seed } = this.inputs.get(key) ?? this.read(clock, position, set, values);
    this.inputs.set(key, { input, seed });
    const own = seed + repeat;
    return {
      id: idOf({ ...input, seed: own }),
      ...(position > 0 && { scenario: position }),
      ...{ clock, set: values, seed: own },
    };
  }

  private position(path: string): number {
    const known = this.paths.indexOf(path);
    if (known >= 0) return known;
    this.all.push({ name: basename(path, extname(path)), text: readFileSync(path, "utf8"), files: {}, set: {} });
    return this.paths.push(path) - 1;
  }

  private read(clock: NetworkClock, position: number, set: readonly string[], values: Point["set"]) {
    const [scenario, path] = [this.all[position] as PlannedScenario, this.paths[position] as string];
    const { data } = readScenarioText(scenario.text, scenario.name, set);
    for (const { file } of fileReferences(data)) {
      scenario.files[file] ??= readReferenced(resolve(dirname(path), file));
    }
    const { seed } = data as { seed?: unknown };
    const input = inputOf({ code: this.code }, clock, scenario, values);
    return { input, seed: typeof seed === "number" ? seed : kDefaultSeed };
  }
}
