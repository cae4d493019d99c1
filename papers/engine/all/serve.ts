/** A worker's side of `weir paper all`: runs points, and judges experiments by them, each in its folder. */
import { join } from "node:path";
import { serveTasks } from "../../../src/base/processes/serve.js";
import type { Point, Study } from "../../../src/study/plan.js";
import { type Runners, runPoint } from "../../../src/study/point.js";
import { ResultStore } from "../../../src/study/store.js";
import { documentOf } from "../document.js";
import type { Clock, Experiment } from "../experiment.js";
import { writePaper } from "../files.js";
import { paperMade } from "../made.js";
import type { References } from "../reference.js";
import { runExperiment } from "../run.js";

/** All work has this in common. */
export interface AllSetup {
  study: Study;
  /** Each experiment has a folder in it. */
  directory: string;
  seed?: number | undefined;
  scale?: number | undefined;
}

/** A run of an experiment in virtual time; or all else of it: what is not run yet, its models, and the judgement. */
export type Work = { experiment: string } & (
  | { point: Point }
  | { clocks: readonly Clock[]; references: References; key: string }
);

export type WorkOutcome =
  /** Its folder has all of it; what went wrong in a run is there. */
  | { status: "done" }
  | { status: "failed"; error: string }
  /** It was told to stop; what is in the folder is not whole. */
  | { status: "stopped" };

/** `find` gives an experiment by its id. */
export function serveExperiments(find: (id: string) => Experiment | undefined, runners: Runners): void {
  serveTasks<AllSetup, Work, number, WorkOutcome>(({ study, directory, seed, scale }) => {
    const store = ResultStore.create(directory);
    return async (work, { signal, onProgress }) => {
      try {
        if ("point" in work) return await runPoint(runners, study, work.point, store, { signal, onProgress });
        const { experiment: id, clocks, references, key } = work;
        const experiment = find(id);
        if (experiment === undefined) throw new Error(`no experiment ${id}`);
        const began = performance.now();
        const options = { clocks, code: study.code, seed, scale, references, directory: join(directory, id), signal };
        const outcome = await runExperiment(experiment, runners, {
          ...options,
          onProgress: ({ number, runs, done }) => onProgress((number - 1 + done) / runs),
        });
        if (signal.aborted) return { status: "stopped" };
        await writePaper(options.directory, outcome, documentOf(outcome, paperMade({ key, weir: study.code }, began)));
        return { status: "done" };
      } catch (error) {
        return { status: "failed", error: error instanceof Error ? error.message : String(error) };
      }
    };
  });
}
