/** Evidence of a finished lab for its result, made up: counters, reports of workers, and the scenario. */

import { MessageTimes } from "../../../src/clocks/lab/message_times.js";
import type { MeasuredOutcome, RunEvidence } from "../../../src/clocks/lab/outcome.js";
import { isDcqcn } from "../../../src/congestion/algorithms.js";
import { CounterTable } from "../../../src/native/counters.js";
import type { Distribution } from "../../../src/native/histogram.js";
import type { NativeWorker } from "../../../src/native/types.js";
import { Completions } from "../../../src/result/completions.js";
import { Recorder, type RecordSource } from "../../../src/result/recorder.js";
import { Fabric } from "../../../src/scenario/fabric.js";
import { type DcqcnParameters, parseScenario, type Scenario } from "../../../src/scenario/scenario.js";
import { flowsAt } from "../../../src/scenario/traffic.js";
import { star } from "../../fixtures/networks.js";
import { describedAs } from "../../native/counters.js";

export type Counter = [name: string, labels: Record<string, string>, value: number];

/** Two hosts that send to a third over one switch, at scale 10: 1 Gb/s on the wire. */
export function smallScenario(overrides: Record<string, unknown> = {}): Scenario {
  return parseScenario({
    name: "small",
    scale: 10,
    duration: "100ms",
    warmup: "20ms",
    topology: star(["a", "b", "c"], { rate: "10Gbps", delay: "2us" }),
    traffic: [{ id: "x", from: ["a", "b"], to: "c" }],
    probes: { interval: "10ms" },
    fidelity: { lateness: "5ms" },
    ...overrides,
  }).scenario;
}

/** DCQCN's parameters at the scenario's hosts. */
export function dcqcnOf({ congestion }: Scenario): DcqcnParameters {
  if (!isDcqcn(congestion)) throw new Error("these hosts do not run DCQCN");
  return congestion.parameters;
}

/** Records of smallScenario() on the wire, from time 0, ns of wall time. */
export function recorderOf(scenario: Scenario, changes: Partial<RecordSource> = {}): Recorder {
  const flows = scenario.hosts.map(({ name }) => flowsAt(scenario.flows, name).map(({ flow }) => flow.id));
  return new Recorder(scenario, {
    ports: [["a", "b", "c"]],
    flowAt: (device, index) => flows[device]?.[index],
    scale: 10,
    begin: 0,
    interval: scenario.probes.interval * 10,
    ...changes,
  });
}

/** Nothing is complete yet. */
export const completionsOf = (scenario: Scenario): Completions => new Completions(scenario, new Fabric(scenario));

/** A worker's counters as they would be read. */
export function counterTable(counters: readonly Counter[]): CounterTable {
  const worker = {
    manifest: () => counters.map(([name, labels]) => describedAs(name, labels)),
    readCounters: (target: Float64Array) => {
      target.set(counters.map(([, , value]) => value));
      return 0;
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
export function calmOutcome(changes: Partial<MeasuredOutcome> = {}): MeasuredOutcome {
  return {
    loop_gap: constant(50_000, 1000),
    timer_lateness: constant(50_000, 1000),
    longest_gap_at: 0,
    busy: 1e9,
    cpu_wait: 0,
    real_time: true,
    host_drops: 0,
    record_overflow: 0,
    punt_refused: 0,
    inject_refused: 0,
    tuning: [],
    queues: [],
    ...changes,
  };
}

/** Frames that a NIC sent and another one received. */
export const kCarried: readonly Counter[] = [
  ["tx_packets", { device: "a" }, 1000],
  ["rx_packets", { device: "c" }, 1000],
];

/** Evidence of a run that nothing happened in but for some frames; `changes` replaces parts of it. */
export function evidence(changes: Partial<RunEvidence> = {}): RunEvidence {
  const scenario = changes.scenario ?? smallScenario();
  return {
    scenario,
    scale: 10,
    recorder: recorderOf(scenario),
    completions: completionsOf(scenario),
    messageTimes: new MessageTimes(),
    switches: counterTable([]),
    nics: counterTable(kCarried),
    outcomes: [calmOutcome(), calmOutcome()],
    unread: 0,
    changes: [],
    parameterChanges: [],
    faults: [],
    ...changes,
  };
}
