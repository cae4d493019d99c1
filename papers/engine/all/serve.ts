/** A worker's side of `weir paper all`: runs the experiments that it is handed, each into its folder. */
import { join } from "node:path";
import { serveTasks } from "../../../src/base/processes/serve.js";
import { documentOf } from "../document.js";
import type { Clock, Experiment } from "../experiment.js";
import { writePaper } from "../files.js";
import { paperMade } from "../made.js";
import type { References } from "../reference.js";
import { type PaperProgress, type Runners, runExperiment } from "../run.js";

/** Setup that all experiments share. */
export interface AllSetup {
  /** Each experiment has a folder in it. */
  directory: string;
  weir: string;
  seed?: number | undefined;
  scale?: number | undefined;
}

export interface Order {
  id: string;
  clocks: readonly Clock[];
  references: References;
  key: string;
}

export type OrderOutcome =
  /** Its folder has all of it; what went wrong in a run is there. */
  | { status: "done" }
  | { status: "failed"; error: string }
  /** It was told to stop; what is in the folder is not whole. */
  | { status: "stopped" };

/** `find` gives an experiment by its id. */
export function serveExperiments(find: (id: string) => Experiment | undefined, runners: Runners): void {
  serveTasks<AllSetup, Order, PaperProgress, OrderOutcome>(({ directory, weir, seed, scale }) => {
    return async ({ id, key, clocks, references }, { signal, onProgress }) => {
      const experiment = find(id);
      if (experiment === undefined) throw new Error(`no experiment ${id}`);
      const began = performance.now();
      const folder = join(directory, id);
      try {
        const options = { clocks, seed, scale, references, directory: folder, signal, onProgress };
        const outcome = await runExperiment(experiment, runners, options);
        if (signal.aborted) return { status: "stopped" };
        await writePaper(folder, outcome, documentOf(outcome, paperMade({ key, weir }, began)));
        return { status: "done" };
      } catch (error) {
        return { status: "failed", error: error instanceof Error ? error.message : String(error) };
      }
    };
  });
}
