/** Tells Prometheus of one daemon or lab: native counters, occupancy, queue pairs, and the process itself. */
import type { DcbxReport, LldpReport, ProgramReport, QueuePairReport } from "../../device/protocol.js";
import { type CounterTable, qpnText } from "../../native/counters.js";
import type { NamedHistogram } from "../../native/histogram.js";
import type { CounterDescription, CounterName, SwitchState } from "../../native/types.js";
import { kPriorities } from "../../wire/priority.js";
import { aliasesOf } from "./aliases.js";
import { Busiest } from "./busiest.js";
import type { Labels, MetricFamily, Sample } from "./family.js";
import type { GaugeName } from "./gauges.js";
import { type Format, Instruments } from "./instruments.js";
import { type Metric, metricOf, perQueuePair, scopeOf } from "./mapping.js";
import { ProgramCounters } from "./programs.js";

/** Readings that the registry takes at every scrape. */
export interface MetricsSource {
  /** Counters of each worker, with counts from its start, whatever was cleared. All manifests are empty until devices live. */
  counters(): readonly Pick<CounterTable, "manifest" | "value">[];
  switches(): SwitchReading[];
  nics(): NicReading[];
  /** Names and meanings of the counters of a queue pair. */
  pairCounters(): readonly CounterName[];
  histograms(): NamedHistogram[];
  ports(): PortReading[];
  /** Neighbours at ports where LLDP is on. */
  discovery(): DiscoveryReading[];
  workers(): { name: string; loopGapNs: number }[];
  /** Reloads of a daemon's file. */
  reloads?(): { readonly succeeded: number; readonly failed: number };
  /** Scale of a lab: wall time = meant time * scale. All that is told here is in the wall's time. */
  scale?(): number;
}

export interface SwitchReading {
  name: string;
  ports: string[];
  state: SwitchState;
  fdbEntries: number;
  /** Priorities without loss. */
  pfc: readonly number[];
  /** Thresholds in bytes; undefined: ECN is off. */
  ecn: { priorities: readonly number[]; kmin: number; kmax: number } | undefined;
}

export interface NicReading {
  device: string;
  pfc: readonly number[];
  pairs: QueuePairReading[];
  programs: ProgramReport[];
}

type QueuePairReading = Omit<QueuePairReport, "state">;

export interface DiscoveryReading {
  device: string;
  lldp: LldpReport;
  dcbx: DcbxReport;
}

export interface PortReading {
  device: string;
  /** Interface of a NIC's port. */
  netdev: string | undefined;
  name: string;
  up: boolean;
  /** Whether frames wait for the host (`tx_stalled`), or at the host (`rx_stuck`). */
  tx_stalled: boolean;
  rx_stuck: boolean;
  /** Rate in bit/s; 0: unlimited. */
  rate: number;
  transitions: number;
  /** MTU of the interface; null: unknown. */
  interface_mtu: number | null;
  mtu_changes: number;
  mac_control: { reaches: "yes" | "unlikely" | "no" | "unknown" };
}

export interface RegistryOptions {
  version: string;
  kind: "switch" | "nic" | "lab";
  /** Most queue pairs that have series of their own. */
  queuePairs: number;
  /** Whether metrics are also exposed under the names of node_exporter's infiniband collector. */
  nodeInfiniband: boolean;
}

interface Series {
  last: number;
  labels: Labels;
  metric: Metric;
  family: MetricFamily;
  /** Sample of the series while it is shown. */
  sample: Sample | undefined;
}

/** A native counter, and the series that it is exposed as. */
interface Exposed {
  series: Series[];
  /** Device and number of the queue pair that it belongs to. */
  pair: string | undefined;
  /** Its value is the link bytes that the queue pair has moved in one direction. */
  moves: boolean;
}

export class MetricsRegistry {
  private readonly instruments = new Instruments();
  private readonly busiest: Busiest;
  private readonly programs: ProgramCounters;
  /** Exposed counters of each worker. */
  private exposed: Exposed[][] | undefined;
  /** The queue pairs that have series now. */
  private chosen = new Set<string>();
  private readonly started = Date.now() / 1000 - process.uptime();

  constructor(
    private readonly source: MetricsSource,
    private readonly options: RegistryOptions,
  ) {
    const { version, kind } = options;
    this.busiest = new Busiest(options.queuePairs);
    this.programs = new ProgramCounters(this.instruments, () => source.pairCounters());
    this.instruments.set("weir_build_info", { version, node: process.version, arch: process.arch, kind }, 1);
  }

  /** Returns the exposition, with everything read anew. */
  async scrape(format: Format = "prometheus"): Promise<string> {
    const nics = this.source.nics();
    this.#takeCounters(nics);
    this.#takeSwitches();
    for (const name of kOfQueuePairs) this.instruments.clear(name);
    this.programs.clear();
    for (const nic of nics) this.#takeNic(nic);
    this.#takePorts();
    this.#takeDiscovery();
    this.#takeProcess();
    this.instruments.distributions(this.source.histograms());
    return this.instruments.expose(format);
  }

  #takeCounters(nics: readonly NicReading[]): void {
    const workers = this.source.counters();
    if (workers.some(({ manifest }) => manifest.length === 0)) return;
    this.exposed ??= this.#expose(workers);
    const each = (act: (exposed: Exposed, value: number) => void) =>
      this.exposed?.forEach((own, worker) => {
        own.forEach((exposed, i) => {
          act(exposed, workers[worker]?.value(i) ?? 0);
        });
      });
    const moved = new Map(nics.flatMap(movedByPrograms));
    each(({ pair, moves }, value) => {
      if (pair !== undefined) moved.set(pair, (moved.get(pair) ?? 0) + (moves ? value : 0));
    });
    this.chosen = this.busiest.choose(moved, process.uptime());
    each(({ series, pair }, value) => {
      const shown = pair === undefined || this.chosen.has(pair);
      for (const one of series) take(one, shown ? value : undefined);
    });
  }

  #expose(workers: ReturnType<MetricsSource["counters"]>): Exposed[][] {
    const netdevs = new Map(this.source.ports().map(({ device, netdev }) => [device, netdev]));
    return workers.map(({ manifest }) => manifest.map((description) => this.#exposedAs(description, netdevs)));
  }

  #exposedAs(description: CounterDescription, netdevs: ReadonlyMap<string, string | undefined>): Exposed {
    const { name, labels } = description;
    const scope = scopeOf(labels);
    const pair = scope !== undefined && perQueuePair(scope) ? pairOf(labels.device, labels.qpn) : undefined;
    const moves = pair !== undefined && name.endsWith("_wire_bytes");
    const hidden = pair !== undefined && this.options.queuePairs === 0;
    if (scope === undefined || hidden) return { series: [], pair, moves };
    const aliases = scope === "nic" ? aliasesOf(description, this.options.nodeInfiniband) : [];
    const series = [metricOf(scope, description), ...aliases].map((metric): Series => {
      const own: Record<string, string> = { ...metric.fixed };
      for (const [native, label] of Object.entries(metric.labels)) own[label] = labels[native] ?? "";
      if (metric.name.startsWith("rdma_roce_pfc_")) own.netdev = netdevs.get(labels.device ?? "") ?? "";
      return { last: 0, labels: own, metric, family: this.instruments.of(metric), sample: undefined };
    });
    return { series, pair, moves };
  }

  #takeSwitches(): void {
    this.instruments.clear("weir_switch_ecn_min_threshold_bytes");
    this.instruments.clear("weir_switch_ecn_max_threshold_bytes");
    for (const found of this.source.switches()) this.#takeOneSwitch(found);
  }

  #takeOneSwitch({ name, ports, state, fdbEntries, pfc, ecn }: SwitchReading): void {
    const { buffer } = state;
    const set = this.instruments.set.bind(this.instruments);
    set("weir_switch_pool_size_bytes", { switch: name }, buffer.total);
    set("weir_switch_pool_occupancy_bytes", { switch: name }, buffer.occupied);
    set("weir_switch_pool_watermark_bytes", { switch: name }, buffer.watermark);
    set("weir_switch_pfc_threshold_bytes", { switch: name }, buffer.pfc_threshold);
    set("weir_switch_fdb_entries", { switch: name }, fdbEntries);
    for (const p of ecn?.priorities ?? []) {
      set("weir_switch_ecn_min_threshold_bytes", { switch: name, priority: String(p) }, ecn?.kmin ?? 0);
      set("weir_switch_ecn_max_threshold_bytes", { switch: name, priority: String(p) }, ecn?.kmax ?? 0);
    }
    for (const p of kPriorities) set("weir_switch_pfc_enabled", { switch: name, priority: String(p) }, has(pfc, p));
    state.ports.forEach((port, i) => {
      for (const p of kPriorities) {
        const labels = { switch: name, port: ports[i] ?? "", priority: String(p) };
        set("weir_switch_queue_occupancy_bytes", labels, port.queue_bytes[p] ?? 0);
        set("weir_switch_pg_occupancy_bytes", labels, port.ingress_bytes[p] ?? 0);
        set("weir_switch_pg_xoff_room_occupancy_bytes", labels, port.headroom_bytes[p] ?? 0);
        set("weir_switch_pfc_paused", { ...labels, direction: "rx" }, (port.paused >> p) & 1);
        set("weir_switch_pfc_paused", { ...labels, direction: "tx" }, (port.pausing >> p) & 1);
      }
    });
  }

  #takeNic({ device, pfc, pairs, programs }: NicReading): void {
    const own = { device, port: "1" };
    const set = this.instruments.set.bind(this.instruments);
    for (const p of kPriorities) set("weir_nic_pfc_enabled", { ...own, priority: String(p) }, has(pfc, p));
    set("weir_queue_pairs", own, pairs.length);
    set("weir_programs", own, programs.length);
    if (this.options.queuePairs === 0) return;
    for (const program of programs) {
      const labels = { ...own, pid: String(program.pid), command: program.command };
      const drop = (reason: string, value: number) =>
        set("weir_program_dropped_packets_total", { ...labels, reason }, value);
      drop("busy", program.drop_program_busy);
      drop("packet", program.drop_program_packet);
    }
    for (const pair of pairs) {
      const qpn = qpnText(pair.qpn);
      if (!this.chosen.has(pairOf(device, qpn))) continue;
      const labels = { ...own, qpn, qp: pair.name };
      this.programs.take(labels, pair.counters);
      set("weir_qp_rate_bytes_per_second", labels, pair.rate / 8);
      set("weir_qp_target_rate_bytes_per_second", labels, pair.target_rate / 8);
      if (pair.alpha !== null) set("weir_qp_alpha", labels, pair.alpha);
      if (pair.window !== null) set("weir_qp_congestion_window_packets", labels, pair.window);
      for (const [stage, state] of kStages) {
        set("weir_qp_rp_stage", { ...labels, stage }, pair.limited && pair.stage === state ? 1 : 0);
      }
      const pid = pair.program === null ? "" : String(pair.program.pid);
      const about = { peer: pair.peer, remote_qpn: String(pair.remote_qpn), transport: pair.transport, pid };
      set("weir_qp_info", { ...labels, ...about }, 1);
    }
  }

  #takePorts(): void {
    const { instruments } = this;
    const set = instruments.set.bind(instruments);
    instruments.clear("weir_port_rate_bytes_per_second");
    instruments.clear("weir_port_mtu_bytes");
    instruments.clear("rdma_port_info");
    for (const port of this.source.ports()) {
      const labels = { device: port.device, port: port.name };
      set("weir_port_up", labels, port.up ? 1 : 0);
      set("weir_port_stalled", { ...labels, direction: "tx" }, port.tx_stalled ? 1 : 0);
      set("weir_port_stalled", { ...labels, direction: "rx" }, port.rx_stuck ? 1 : 0);
      if (port.rate > 0) set("weir_port_rate_bytes_per_second", labels, port.rate / 8);
      set("weir_port_transitions_total", labels, port.transitions);
      if (port.interface_mtu !== null) set("weir_port_mtu_bytes", labels, port.interface_mtu);
      set("weir_port_mtu_changes_total", labels, port.mtu_changes);
      const { reaches } = port.mac_control;
      if (reaches !== "unknown") set("weir_port_pfc_possible", labels, reaches === "yes" ? 1 : 0);
      this.#takeRdmaPort(port);
    }
  }

  #takeDiscovery(): void {
    const set = this.instruments.set.bind(this.instruments);
    this.instruments.clear("weir_dcbx_mismatch");
    for (const { device, lldp, dcbx } of this.source.discovery()) {
      for (const { port, neighbours, ...counts } of lldp.ports) {
        const frames = (what: string, value: number) => set("weir_lldp_frames_total", { device, port, what }, value);
        set("weir_lldp_neighbours", { device, port }, neighbours.length);
        frames("sent", counts.frames_out);
        frames("received", counts.frames_in);
        frames("limited", counts.frames_limited);
        frames("discarded", counts.frames_discarded);
        frames("with_errors", counts.frames_in_errors);
      }
      for (const { port, mismatches } of dcbx.ports) {
        for (const of of kMismatches) {
          const found = mismatches.some((mismatch) => mismatch.of === of);
          set("weir_dcbx_mismatch", { device, port, of }, found ? 1 : 0);
        }
      }
    }
  }

  #takeProcess(): void {
    const set = this.instruments.set.bind(this.instruments);
    for (const { name, loopGapNs } of this.source.workers()) {
      set("weir_worker_loop_gap_max_seconds", { worker: name }, loopGapNs / 1e9);
    }
    const reloads = this.source.reloads?.();
    if (reloads !== undefined) {
      set("weir_reloads_total", { result: "succeeded" }, reloads.succeeded);
      set("weir_reloads_total", { result: "failed" }, reloads.failed);
    }
    const scale = this.source.scale?.();
    if (scale !== undefined) set("weir_lab_scale", {}, scale);
    const { user, system } = process.cpuUsage();
    set("process_cpu_seconds_total", {}, (user + system) / 1e6);
    set("process_resident_memory_bytes", {}, process.memoryUsage.rss());
    set("process_start_time_seconds", {}, this.started);
  }

  /** The port of a NIC as sysfs would describe it. */
  #takeRdmaPort({ device, netdev, up, rate }: PortReading): void {
    if (netdev === undefined) return;
    const { instruments, options } = this;
    const own = { device, port: "1" };
    const state = { state: up ? "ACTIVE" : "DOWN", phys_state: up ? "LinkUp" : "Disabled" };
    const link_speed = `${rate / 1e9} Gb/sec`;
    instruments.set("rdma_port_info", { ...own, netdev, link_layer: "Ethernet", ...state, link_speed }, 1);
    if (!options.nodeInfiniband) return;
    instruments.set("node_infiniband_state_id", own, up ? 4 : 1);
    instruments.set("node_infiniband_physical_state_id", own, up ? 5 : 3);
    instruments.set("node_infiniband_rate_bytes_per_second", own, rate / 8);
  }
}

/** @param value Undefined: the series is not to be shown. */
function take(series: Series, value: number | undefined): void {
  const { family, labels, last, metric } = series;
  if (value === undefined) {
    if (series.sample !== undefined) family.remove(labels);
    series.sample = undefined;
    series.last = 0;
    return;
  }
  series.sample ??= family.sample(labels);
  if (metric.type === "gauge") series.sample.value = value * metric.scale;
  else if (value >= last) series.sample.value += (value - last) * metric.scale;
  series.last = value;
}

/** Link bytes of queue pairs that are in no manifest. */
const movedByPrograms = ({ device, pairs }: NicReading) =>
  pairs.flatMap(({ qpn, counters }): [string, number][] =>
    counters === undefined
      ? []
      : [[pairOf(device, qpnText(qpn)), (counters.tx_wire_bytes ?? 0) + (counters.rx_wire_bytes ?? 0)]],
  );

const pairOf = (device = "", qpn = "") => `${device} ${qpn}`;

const kMismatches = ["pfc", "roce-priority"] as const;

const has = (priorities: readonly number[], p: number) => (priorities.includes(p) ? 1 : 0);

const kOfQueuePairs: readonly GaugeName[] = [
  "weir_qp_rate_bytes_per_second",
  "weir_qp_target_rate_bytes_per_second",
  "weir_qp_alpha",
  "weir_qp_congestion_window_packets",
  "weir_qp_rp_stage",
  "weir_qp_info",
  "weir_program_dropped_packets_total",
];

const kStages = [
  ["fr", "fast_recovery"],
  ["ai", "additive_increase"],
  ["hai", "hyper_increase"],
] as const;
