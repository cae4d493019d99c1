/** What a finished lab hands to the report, made up: counters, what workers say of themselves, and the scenario. */
import { parseScenario, type Scenario } from "../../src/config/scenario.js";
import type { RunEvidence } from "../../src/lab/outcome.js";
import { Recorder } from "../../src/lab/recorder.js";
import { CounterTable } from "../../src/native/counters.js";
import type { Distribution, NativeWorker, WorkerOutcome } from "../../src/native/types.js";

export type Counter = [name: string, labels: Record<string, string>, value: number];

/** Two hosts that send to a third over one switch, at scale 10: 1 Gb/s on the wire. */
export function smallScenario(overrides: Record<string, unknown> = {}): Scenario {
  return parseScenario({
    name: "small",
    scale: 10,
    duration: "100ms",
    warmup: "20ms",
    topology: {
      link: { rate: "10Gbps", delay: "2us" },
      hosts: ["a", "b", "c"],
      switches: ["sw"],
      links: ["a -- sw", "b -- sw", "c -- sw"],
    },
    traffic: [{ id: "x", from: ["a", "b"], to: "c" }],
    probes: { interval: "10ms" },
    fidelity: { lateness: "5ms" },
    ...overrides,
  }).scenario;
}

/** A worker's counters as they would be read. */
export function counterTable(counters: readonly Counter[]): CounterTable {
  const worker = {
    manifest: () => counters.map(([name, labels]) => ({ name, unit: "", help: "", labels })),
    readCounters: (target: Float64Array) => {
      target.set(counters.map(([, , value]) => value));
      return counters.length;
    },
  };
  const table = new CounterTable(worker as unknown as NativeWorker);
  table.refresh();
  return table;
}

/** A distribution with one value. */
export function constant(value: number, weight = 1): Distribution {
  return { mean: value, p50: value, p95: value, p99: value, max: value, weight, cdf: [[value, 1]] };
}

/** A worker that had nothing to complain of, but for `changes`. */
export function calmOutcome(changes: Partial<WorkerOutcome> = {}): WorkerOutcome {
  return {
    loop_gap: constant(50_000, 1000),
    timer_lateness: constant(50_000, 1000),
    host_drops: 0,
    record_overflow: 0,
    capture_dropped: 0,
    punt_refused: 0,
    inject_refused: 0,
    tuning: [],
    queues: [],
    ...changes,
  };
}

/** Evidence of a run without frames; `changes` replaces parts of it. */
export function evidence(changes: Partial<RunEvidence> = {}): RunEvidence {
  const scenario = changes.scenario ?? smallScenario();
  return {
    scenario,
    scale: 10,
    recorder: new Recorder(scenario, [["a", "b", "c"]], 10, 0, scenario.probes.interval * 10),
    switches: counterTable([]),
    nics: counterTable([]),
    outcomes: [calmOutcome(), calmOutcome()],
    ...changes,
  };
}
