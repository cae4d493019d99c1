/** A worker's side: runs the points that it is handed into the store. */

import { serveTasks } from "../../base/processes/serve.js";
import type { Clock } from "../../clocks/clock.js";
import type { Point, Sweep } from "./plan.js";
import { type PointOutcome, runPoint } from "./point.js";
import { ResultStore } from "./store.js";

/** What all points share. */
export interface SweepSetup {
  sweep: Sweep;
  directory: string;
}

export function serve(clock: Pick<Clock, "run">): void {
  serveTasks<SweepSetup, Point, number, PointOutcome>(({ sweep, directory }) => {
    const store = ResultStore.create(directory);
    return (point, context) => runPoint(clock, sweep, point, store, context);
  });
}
