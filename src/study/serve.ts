/** The worker's side: it runs the points that it is handed into the store. */

import { serveTasks } from "../base/processes/serve.js";
import type { Point, Study } from "./plan.js";
import { type PointOutcome, type Runners, runPoint } from "./point.js";
import { ResultStore } from "./store.js";

/** Facts that all points share. */
export interface StudySetup {
  study: Study;
  directory: string;
}

export function serve(runners: Runners): void {
  serveTasks<StudySetup, Point, number, PointOutcome>(({ study, directory }) => {
    const store = ResultStore.create(directory);
    return (point, context) => runPoint(runners, study, point, store, context);
  });
}
