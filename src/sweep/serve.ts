/** A worker's side: runs the points that it is handed into the store. */
import { serveTasks } from "../processes/serve.js";
import type { Point, Sweep } from "./plan.js";
import { type PointOutcome, runPoint, type Simulate } from "./point.js";
import { ResultStore } from "./store.js";

/** What all points share. */
export interface SweepSetup {
  sweep: Sweep;
  directory: string;
}

export function serve(simulate: Simulate): void {
  serveTasks<SweepSetup, Point, number, PointOutcome>(({ sweep, directory }) => {
    const store = ResultStore.create(directory);
    return (point, context) => runPoint(simulate, sweep, point, store, context);
  });
}
