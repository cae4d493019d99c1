/** A lab while it runs, for whoever looks on or has a hand in it: live view, dashboard, control sockets. */

import type { CounterTable } from "../../native/counters.js";
import type { NativeWorker } from "../../native/types.js";
import type { Recorder } from "../../result/recorder.js";
import type { Scenario } from "../../scenario/types.js";

export interface LabWorker {
  /** In the order of the scenario's switches, or hosts. Only to be read from. */
  worker: NativeWorker;
  /** As last looked at. */
  counters: CounterTable;
}

export interface LabAccess {
  /** As it is now. */
  readonly scenario: Scenario;
  readonly scale: number;
  readonly switches: LabWorker;
  readonly nics: LabWorker;
  readonly recorder: Recorder;
  /** Meant ns since traffic began; below 0 before. */
  now(): number;
  /**
   * From now on the devices have the parameters of `scenario`, which is the same in all else; `set` says so in the result. Rates
   * that were or will be changed by plan stay so.
   */
  change(scenario: Scenario, set: readonly string[]): void;
}

/** A lab whose ports are open, and whose devices do not live yet. */
export type OpenLab = Pick<LabAccess, "scenario" | "scale"> & Record<"switches" | "nics", Pick<LabWorker, "worker">>;

export interface LabObserver {
  /** No frame has been sent yet. */
  opened?(lab: OpenLab): void;
  /** Devices live, and traffic is about to begin. */
  begun?(lab: LabAccess): void;
  /** Every 50 ms or so, and once after the last frame: records and counters have just been read. */
  looked?(lab: LabAccess): void;
  /** Nothing of the lab may be used any more. */
  ended?(): void;
}
