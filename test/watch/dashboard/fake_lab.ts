/** A running lab that counts and changes as it is told. */

import type { LabAccess, LabObserver } from "../../../src/clocks/lab/access.js";
import { CounterTable } from "../../../src/native/counters.js";
import type { NativeWorker, SwitchState } from "../../../src/native/types.js";
import type { Scenario } from "../../../src/scenario/types.js";
import { type Counter, recorderOf } from "../../clocks/lab/evidence.js";
import { describedAs } from "../../native/counters.js";

const kZeros = [0, 0, 0, 0, 0, 0, 0, 0];

/** A worker's counters that a test can set. */
export class FakeCounters {
  readonly table: CounterTable;
  /** Time of counters that are counted from now on, ns. */
  asOf = 0;

  constructor(private readonly counters: Counter[]) {
    const worker = {
      manifest: () => counters.map(([name, labels]) => describedAs(name, labels)),
      readCounters: (target: Float64Array) => {
        target.set(this.counters.map(([, , value]) => value));
        return this.asOf;
      },
    };
    this.table = new CounterTable(worker as unknown as NativeWorker);
    this.table.refresh();
  }

  /** Adds to the counter at this place. */
  count(place: number, more: number): void {
    (this.counters[place] as Counter)[2] += more;
    this.table.refresh();
  }
}

export class FakeLab implements LabAccess {
  readonly scale = 10;
  readonly changes: { scenario: Scenario; set: readonly string[] }[] = [];
  readonly recorder;
  time = 0;
  state: SwitchState = {
    buffer: { total: 1e6, shared: 1e6, occupied: 0, watermark: 0, pfc_threshold: 5e5 },
    ports: ["a", "b", "c"].map(() => ({
      up: true,
      queue_bytes: [...kZeros],
      ingress_bytes: [...kZeros],
      headroom_bytes: [...kZeros],
      paused: 0,
      pausing: 0,
      pfc_storms: 0,
    })),
  };

  constructor(
    public scenario: Scenario,
    readonly ofSwitches = new FakeCounters([["rx_packets", { switch: "sw", port: "a" }, 0]]),
    readonly ofNics = new FakeCounters([["rx_packets", { device: "a" }, 0]]),
  ) {
    this.recorder = recorderOf(scenario);
  }

  get switches() {
    const worker = {
      worstGap: () => 5000,
      recentGap: () => 5000,
      histograms: () => [],
      forwardingEntries: () => 0,
      switchState: () => this.state,
    } as unknown as NativeWorker;
    return { worker, counters: this.ofSwitches.table };
  }
  get nics() {
    const worker = {
      worstGap: () => 7000,
      recentGap: () => 7000,
      histograms: () => [],
      queuePairs: () => [],
    } as unknown as NativeWorker;
    return { worker, counters: this.ofNics.table };
  }
  now(): number {
    return this.time;
  }
  change(scenario: Scenario, set: readonly string[]): void {
    this.changes.push({ scenario, set });
    this.scenario = scenario;
  }

  /** Pretends that it ran for `ns` more. */
  pass(observer: LabObserver, ns: number): void {
    this.time += ns;
    observer.looked?.(this);
  }
}
