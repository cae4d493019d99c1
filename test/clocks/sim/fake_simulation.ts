/** A native simulation that does as told: time passes in steps, and counters are what a test says they are at a time. */
import type {
  FastForwardReport,
  LearnedReport,
  NativeSimulation,
  NativeSimulationRoutes,
  NativeSimulationSwitch,
  SimulationAddon,
  SimulationConfig,
  SimulationCounters,
  SimulationManifest,
} from "../../../src/native/simulation_types.js";
import { kRecordWords } from "../../../src/native/types.js";
import { describedAs } from "../../native/counters.js";
import { histogramOf } from "../../native/histograms.js";

const kPriorities = 8;
const described = (scope: Parameters<typeof describedAs>[2], ...names: string[]) =>
  names.map((name) => describedAs(name, {}, scope));

export const kManifest: SimulationManifest = {
  switch_port: described(
    "switch_port",
    "tx_packets",
    "tx_pfc_frames",
    "rx_pfc_frames",
    "drop_buffer_full",
    "drop_no_route",
  ),
  switch_priority: described(
    "switch_priority",
    "wred_ecn_marked_packets",
    "pfc_tx_packets",
    "pfc_rx_packets",
    "pfc_rx_pause_duration",
    "cn_cp_transmitted_frames",
    "cn_cp_transmitted_cnms",
  ),
  nic: described(
    "nic",
    "tx_packets",
    "rx_packets",
    "np_cnp_sent",
    "rp_cnp_handled",
    "rx_pfc_frames",
    "rp_cnm_handled",
    "rp_cnm_bad_version",
  ),
  nic_priority: described("nic_priority", "rx_prio_pause", "rx_prio_pause_duration"),
  transport: described("nic", "retransmitted", "tx_naks"),
  queue_pair: described(
    "queue_pair",
    "tx_packets",
    "rx_packets",
    "rx_bytes",
    "rx_wire_bytes",
    "lost",
    "ecn_marked",
    "cnp_sent",
    "cnp_handled",
  ),
  link: described("link", "frames", "wire_bytes", "lost", "corrupted", "duplicated"),
};

/** Cells that are not zero: "table.row.column" -> value; rows by priority are row * 8 + priority. */
export type Cells = Record<string, number>;

export interface FakeScript {
  /** Virtual ns that one call of run() gets through. */
  step: number;
  cells?: (now: number) => Cells;
  /** Completed messages: flow, number, bytes, start, end. */
  finished?: number[][];
  records?: number[][];
  trace?: Uint8Array[];
  packets?: number;
  /** Data packets, by flow. */
  underWay?: number[];
  fastForward?: FastForwardReport;
  learned?: LearnedReport;
}

export class FakeSimulation {
  config: SimulationConfig | undefined;
  closed = 0;
  readonly reconfigured: { at: number; index: number; config: NativeSimulationSwitch }[] = [];
  readonly links: { at: number; link: number; up: boolean }[] = [];
  readonly rerouted: { at: number; index: number; routes: NativeSimulationRoutes }[] = [];
  readonly runs: { until: number; events: number }[] = [];
  readonly addon: SimulationAddon;
  private now = 0;

  constructor(private readonly script: FakeScript) {
    const fake = this;
    this.addon = {
      simulationManifest: () => kManifest,
      simulationFootprint: () => 0,
      IdealNetwork: undefined as unknown as SimulationAddon["IdealNetwork"],
      FairNetwork: undefined as unknown as SimulationAddon["FairNetwork"],
      Simulation: class {
        constructor(config: SimulationConfig) {
          fake.config = config;
          // biome-ignore lint/correctness/noConstructorReturn: the class is only a door to the fake.
          return fake.simulation() as object as this;
        }
      } as unknown as SimulationAddon["Simulation"],
    };
  }

  private simulation(): NativeSimulation {
    const { script } = this;
    return {
      run: (until, events) => {
        this.runs.push({ until, events });
        this.now = Math.min(until, this.now + script.step);
        return this.now === until;
      },
      faults: () => [],
      fastForward: () => script.fastForward,
      learned: () => script.learned,
      programs: () => [],
      takeNews: () => [],
      tellProgram: () => undefined,
      endSession: () => undefined,
      programListens: () => false,
      sendFrame: () => undefined,
      operations: () => ({ started: new Float64Array(), ended: new Float64Array(), taken: new Uint32Array() }),
      progress: () => ({
        now: this.now,
        events: this.now,
        hops: 2 * this.now,
        flows_started: 1,
        flows_ended: 0,
        flows_failed: 0,
        operations_ended: 0,
        moves: true,
        packets: script.packets ?? 0,
        threads: this.config?.threads ?? 1,
        partitions: 16,
        round: 1001,
        rounds: 10,
        together: 8,
        crossed: this.now,
        taken: 2000,
        waited: 100,
      }),
      counters: () => this.counters(),
      drainRecords: (target) => drain(script.records, target, kRecordWords),
      drainFinished: (target) => drain(script.finished, target, 5),
      drainTrace: () => script.trace?.shift() ?? new Uint8Array(0),
      underWay: () => Uint32Array.from(script.underWay ?? []),
      queueDistributions: () =>
        (this.config?.sampled_queues ?? []).map((queue, position) => ({
          ...queue,
          ...histogramOf([1000 * (position + 1), 1]),
        })),
      senderState: () => {
        throw new Error("not asked for");
      },
      reconfigureSwitch: (index, config) => void this.reconfigured.push({ at: this.now, index, config }),
      reroute: (index, routes) => void this.rerouted.push({ at: this.now, index, routes }),
      setLink: (link, up) => void this.links.push({ at: this.now, link, up }),
      close: () => void this.closed++,
    };
  }

  private counters(): SimulationCounters {
    const { switches = [], nics = [], links = [], flows } = this.config ?? {};
    const ports = switches.reduce((sum, s) => sum + s.ports.length, 0);
    const flowCount = flows?.from.length ?? 0;
    const tables = {
      switch_ports: new Float64Array(ports * kManifest.switch_port.length),
      switch_priorities: new Float64Array(ports * kPriorities * kManifest.switch_priority.length),
      nics: new Float64Array(nics.length * kManifest.nic.length),
      nic_priorities: new Float64Array(nics.length * kPriorities * kManifest.nic_priority.length),
      transports: new Float64Array(nics.length * kManifest.transport.length),
      senders: new Float64Array(flowCount * kManifest.queue_pair.length),
      receivers: new Float64Array(flowCount * kManifest.queue_pair.length),
      links: new Float64Array(2 * links.length * kManifest.link.length),
    };
    const columns: Record<string, keyof SimulationManifest> = {
      switch_ports: "switch_port",
      switch_priorities: "switch_priority",
      nics: "nic",
      nic_priorities: "nic_priority",
      transports: "transport",
      senders: "queue_pair",
      receivers: "queue_pair",
      links: "link",
    };
    for (const [cell, value] of Object.entries(this.script.cells?.(this.now) ?? {})) {
      const [table = "", row = "", column = ""] = cell.split(".");
      const names = kManifest[columns[table] as keyof SimulationManifest].map(({ name }) => name);
      const at = names.indexOf(column);
      if (at < 0) throw new Error(`no column ${column} in ${table}`);
      tables[table as keyof SimulationCounters][Number(row) * names.length + at] = value;
    }
    return tables;
  }
}

/** Moves as many rows as fit; what is left waits for the next call. */
function drain(rows: number[][] | undefined, target: Float64Array, words: number): number {
  const taken = rows?.splice(0, Math.floor(target.length / words)) ?? [];
  taken.forEach((row, i) => {
    target.set(row, i * words);
  });
  return taken.length;
}
