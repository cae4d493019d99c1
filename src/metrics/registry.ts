/** What Prometheus is told of one daemon: native counters, occupancy, queue pairs, and the daemon itself. */
import type { CounterTable } from "../native/counters.js";
import type { NamedHistogram } from "../native/histogram.js";
import type { CounterDescription, QueuePairState, SwitchState } from "../native/types.js";
import { aliasesOf } from "./aliases.js";
import { Busiest } from "./busiest.js";
import type { Labels, MetricFamily, Sample } from "./family.js";
import type { GaugeName } from "./gauges.js";
import { type Format, Instruments } from "./instruments.js";
import { type Metric, metricOf, perQueuePair, scopeOf } from "./mapping.js";

/** What the registry reads at every scrape. */
export interface MetricsSource {
  /** Counts from the start of the daemon, whatever was cleared. The manifest is empty until devices live. */
  counters(): Pick<CounterTable, "manifest" | "value">;
  /** Of a switch. */
  switchState(): SwitchReading | undefined;
  /** Of a NIC. */
  nic(): NicReading | undefined;
  histograms(): NamedHistogram[];
  ports(): PortReading[];
  worker(): { name: string; loopGapNs: number };
  reloads(): { succeeded: number; failed: number };
}

export interface SwitchReading {
  name: string;
  ports: string[];
  state: SwitchState;
  fdbEntries: number;
  /** Priorities without loss. */
  pfc: readonly number[];
  /** Undefined: off. Bytes. */
  ecn: { priorities: readonly number[]; kmin: number; kmax: number } | undefined;
}

export interface NicReading {
  device: string;
  pfc: readonly number[];
  pairs: (Omit<QueuePairState, "alpha" | "state"> & { peer: string; alpha: number | null })[];
}

export interface PortReading {
  device: string;
  name: string;
  up: boolean;
  /** Frames wait for the host; frames wait at the host. */
  tx_stalled: boolean;
  rx_stuck: boolean;
  /** bit/s; 0: unlimited. */
  rate: number;
  transitions: number;
  /** Null: unknown. */
  interface_mtu: number | null;
  mtu_changes: number;
  mac_control: { reaches: "yes" | "unlikely" | "no" | "unknown" };
}

export interface RegistryOptions {
  version: string;
  kind: "switch" | "nic";
  /** Interface of a NIC, for the `netdev` label. */
  netdev?: string | undefined;
  /** Most queue pairs that have series of their own. */
  queuePairs: number;
  /** Under the names of node_exporter's infiniband collector too. */
  nodeInfiniband: boolean;
}

interface Series {
  last: number;
  labels: Labels;
  metric: Metric;
  family: MetricFamily;
  /** While it is shown. */
  sample: Sample | undefined;
}

/** A native counter, and what it is exposed as. */
interface Exposed {
  series: Series[];
  /** Number of the queue pair that it belongs to. */
  qpn: string | undefined;
  /** Its value is the link bytes that the queue pair has moved in one direction. */
  moves: boolean;
}

export class MetricsRegistry {
  private readonly instruments = new Instruments();
  private readonly busiest: Busiest;
  private exposed: Exposed[] | undefined;
  /** Numbers of the queue pairs that have series now. */
  private chosen = new Set<string>();
  private readonly started = Date.now() / 1000 - process.uptime();

  constructor(
    private readonly source: MetricsSource,
    private readonly options: RegistryOptions,
  ) {
    const { version, kind } = options;
    this.busiest = new Busiest(options.queuePairs);
    this.instruments.set("weir_build_info", { version, node: process.version, arch: process.arch, kind }, 1);
  }

  /** The exposition, with everything read anew. */
  async scrape(format: Format = "prometheus"): Promise<string> {
    this.#takeCounters();
    this.#takeSwitch();
    this.#takeNic();
    this.#takeDaemon();
    this.instruments.distributions(this.source.histograms());
    return this.instruments.expose(format);
  }

  #takeCounters(): void {
    const counters = this.source.counters();
    if (counters.manifest.length === 0) return;
    this.exposed ??= counters.manifest.map((description) => this.#exposedAs(description));
    this.#chooseQueuePairs(counters);
    this.exposed.forEach(({ series, qpn }, i) => {
      const shown = qpn === undefined || this.chosen.has(qpn);
      for (const one of series) take(one, shown ? counters.value(i) : undefined);
    });
  }

  #chooseQueuePairs(counters: Pick<CounterTable, "value">): void {
    const moved = new Map<string, number>();
    this.exposed?.forEach(({ qpn, moves }, i) => {
      if (qpn !== undefined) moved.set(qpn, (moved.get(qpn) ?? 0) + (moves ? counters.value(i) : 0));
    });
    this.chosen = this.busiest.choose(moved, process.uptime());
  }

  #exposedAs(description: CounterDescription): Exposed {
    const scope = scopeOf(description.labels);
    const qpn = scope !== undefined && perQueuePair(scope) ? description.labels.qpn : undefined;
    const moves = qpn !== undefined && description.name.endsWith("_wire_bytes");
    const hidden = qpn !== undefined && this.options.queuePairs === 0;
    if (scope === undefined || hidden) return { series: [], qpn, moves };
    const aliases = scope === "nic" ? aliasesOf(description, this.options.nodeInfiniband) : [];
    const series = [metricOf(scope, description), ...aliases].map((metric): Series => {
      const labels: Record<string, string> = { ...metric.fixed };
      for (const [native, label] of Object.entries(metric.labels)) labels[label] = description.labels[native] ?? "";
      if (metric.name.startsWith("rdma_roce_pfc_")) labels.netdev = this.options.netdev ?? "";
      return { last: 0, labels, metric, family: this.instruments.of(metric), sample: undefined };
    });
    return { series, qpn, moves };
  }

  #takeSwitch(): void {
    const found = this.source.switchState();
    if (found === undefined) return;
    const { name, ports, state, fdbEntries, pfc, ecn } = found;
    const { buffer } = state;
    const set = this.instruments.set.bind(this.instruments);
    set("weir_switch_pool_size_bytes", { switch: name }, buffer.total);
    set("weir_switch_pool_occupancy_bytes", { switch: name }, buffer.occupied);
    set("weir_switch_pool_watermark_bytes", { switch: name }, buffer.watermark);
    set("weir_switch_pfc_threshold_bytes", { switch: name }, buffer.pfc_threshold);
    set("weir_switch_fdb_entries", { switch: name }, fdbEntries);
    this.instruments.clear("weir_switch_ecn_min_threshold_bytes");
    this.instruments.clear("weir_switch_ecn_max_threshold_bytes");
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

  #takeNic(): void {
    const found = this.source.nic();
    if (found === undefined) return;
    const { device, pfc, pairs } = found;
    const own = { device, port: "1" };
    const set = this.instruments.set.bind(this.instruments);
    for (const p of kPriorities) set("weir_nic_pfc_enabled", { ...own, priority: String(p) }, has(pfc, p));
    set("weir_queue_pairs", own, pairs.length);
    if (this.options.queuePairs === 0) return;
    for (const name of kOfQueuePairs) this.instruments.clear(name);
    for (const pair of pairs) {
      const qpn = `0x${pair.qpn.toString(16).padStart(6, "0")}`;
      if (!this.chosen.has(qpn)) continue;
      const labels = { ...own, qpn, qp: pair.name };
      set("weir_qp_rate_bytes_per_second", labels, pair.rate / 8);
      set("weir_qp_target_rate_bytes_per_second", labels, pair.target_rate / 8);
      if (pair.alpha !== null) set("weir_qp_alpha", labels, pair.alpha);
      for (const [stage, state] of kStages) {
        set("weir_qp_rp_stage", { ...labels, stage }, pair.limited && pair.stage === state ? 1 : 0);
      }
      set("weir_qp_info", { ...labels, peer: pair.peer, remote_qpn: String(pair.remote_qpn) }, 1);
    }
  }

  #takeDaemon(): void {
    const { instruments } = this;
    const set = instruments.set.bind(instruments);
    instruments.clear("weir_port_rate_bytes_per_second");
    instruments.clear("weir_port_mtu_bytes");
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
      if (this.options.kind === "nic") this.#takeRdmaPort(port);
    }
    const worker = this.source.worker();
    set("weir_worker_loop_gap_max_seconds", { worker: worker.name }, worker.loopGapNs / 1e9);
    const { succeeded, failed } = this.source.reloads();
    set("weir_reloads_total", { result: "succeeded" }, succeeded);
    set("weir_reloads_total", { result: "failed" }, failed);
    const { user, system } = process.cpuUsage();
    set("process_cpu_seconds_total", {}, (user + system) / 1e6);
    set("process_resident_memory_bytes", {}, process.memoryUsage.rss());
    set("process_start_time_seconds", {}, this.started);
  }

  /** The port of a NIC as sysfs would describe it. */
  #takeRdmaPort({ device, up, rate }: PortReading): void {
    const { instruments, options } = this;
    const own = { device, port: "1" };
    instruments.clear("rdma_port_info");
    const state = { state: up ? "ACTIVE" : "DOWN", phys_state: up ? "LinkUp" : "Disabled" };
    const netdev = options.netdev ?? "";
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

const has = (priorities: readonly number[], p: number) => (priorities.includes(p) ? 1 : 0);

const kPriorities = [0, 1, 2, 3, 4, 5, 6, 7];

const kOfQueuePairs: readonly GaugeName[] = [
  "weir_qp_rate_bytes_per_second",
  "weir_qp_target_rate_bytes_per_second",
  "weir_qp_alpha",
  "weir_qp_rp_stage",
  "weir_qp_info",
];

const kStages = [
  ["fr", "fast_recovery"],
  ["ai", "additive_increase"],
  ["hai", "hyper_increase"],
] as const;
