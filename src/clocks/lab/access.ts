/** A lab while it runs, as the live view, the dashboard and control sockets read and change it. */

import type { CounterTable } from "../../native/counters.js";
import type { NativeWorker } from "../../native/types.js";
import type { Recorder } from "../../result/recorder.js";
import type { Scenario } from "../../scenario/types.js";

export interface LabWorker {
  /** Worker whose devices are in the order of the scenario's switches, or hosts. Observers only read from it. */
  worker: NativeWorker;
  /** Counters as they were when last looked at. */
  counters: CounterTable;
}

export interface LabAccess {
  /** The scenario as it is now, with all changes made so far. */
  readonly scenario: Scenario;
  readonly scale: number;
  readonly switches: LabWorker;
  readonly nics: LabWorker;
  readonly recorder: Recorder;
  /** Meant ns since traffic began; below 0 before. */
  now(): number;
  /**
   * Gives the devices, from now on, the parameters of `scenario`, which is the same in all else; `set` names them in the result.
   * Rates that were or will be changed by plan stay so.
   */
  change(scenario: Scenario, set: readonly string[]): void;
}

/** A lab whose ports are open, and whose devices do not live yet. */
export type OpenLab = Pick<LabAccess, "scenario" | "scale"> & Record<"switches" | "nics", Pick<LabWorker, "worker">>;

export interface LabObserver {
  /** Called before any frame is sent. */
  opened?(lab: OpenLab): void;
  /** Called when devices live, and traffic is about to begin. */
  begun?(lab: LabAccess): void;
  /** Called every 50 ms or so, and once after the last frame: records and counters have just been read. */
  looked?(lab: LabAccess): void;
  /** Called at the end: nothing of the lab may be used any more. */
  ended?(): void;
}
