/** The Prometheus registry of one daemon: native counters, occupancy, queue pairs, and the daemon itself. */
import { Counter, Gauge, type Metric as PromMetric, Registry } from "prom-client";
import type { CounterDescription, QueuePairState, SwitchState } from "../native/types.js";
import { type GaugeName, kGauges } from "./gauges.js";
import { type Metric, metricOf, perQueuePair, scopeOf } from "./mapping.js";

/** What the registry reads at every scrape. */
export interface MetricsSource {
  /** Counts from the start of the daemon, whatever was cleared. Empty until devices live. */
  counters(): Iterable<{ description: CounterDescription; value: number }>;
  /** Of a switch. */
  switchState(): { name: string; ports: string[]; state: SwitchState; fdbEntries: number } | undefined;
  /** Of a NIC. */
  queuePairs():
    | { device: string; pairs: (Omit<QueuePairState, "alpha"> & { peer: string; alpha: number | null })[] }
    | undefined;
  ports(): PortReading[];
  worker(): { name: string; loopGapNs: number };
  reloads(): { succeeded: number; failed: number };
}

export interface PortReading {
  device: string;
  name: string;
  up: boolean;
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
  perQp: boolean;
}

interface Series {
  last: number;
  labels: Record<string, string>;
  metric: Metric;
  instrument: Counter | Gauge;
}

export class MetricsRegistry {
  private readonly registry = new Registry();
  private series: (Series | undefined)[] | undefined;
  private readonly started = Date.now() / 1000 - process.uptime();

  constructor(
    private readonly source: MetricsSource,
    private readonly options: RegistryOptions,
  ) {
    this.#gauge("weir_build_info").set(
      { version: options.version, node: process.version, arch: process.arch, kind: options.kind },
      1,
    );
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  /** The exposition, with everything read anew. */
  async scrape(): Promise<string> {
    this.#takeCounters();
    this.#takeSwitch();
    this.#takeQueuePairs();
    this.#takeDaemon();
    return this.registry.metrics();
  }

  #takeCounters(): void {
    const entries = [...this.source.counters()];
    if (entries.length === 0) return;
    this.series ??= entries.map(({ description }) => this.#seriesOf(description));
    entries.forEach(({ value }, i) => {
      const series = this.series?.[i];
      if (series === undefined) return;
      if (series.instrument instanceof Gauge) {
        series.instrument.set(series.labels, value * series.metric.scale);
      } else if (value >= series.last) {
        series.instrument.inc(series.labels, (value - series.last) * series.metric.scale);
      }
      series.last = value;
    });
  }

  #seriesOf(description: CounterDescription): Series | undefined {
    const scope = scopeOf(description.labels);
    if (scope === undefined || (perQueuePair(scope) && !this.options.perQp)) return undefined;
    const metric = metricOf(scope, description);
    const labels: Record<string, string> = { ...metric.fixed };
    for (const [native, label] of Object.entries(metric.labels)) labels[label] = description.labels[native] ?? "";
    if (metric.name.startsWith("rdma_roce_pfc_")) labels.netdev = this.options.netdev ?? "";
    return { last: 0, labels, metric, instrument: this.#instrument(metric, Object.keys(labels)) };
  }

  #instrument(metric: Metric, labelNames: string[]): Counter | Gauge {
    const known = this.registry.getSingleMetric(metric.name) as PromMetric | undefined;
    if (known !== undefined) return known as Counter | Gauge;
    const { name, help } = metric;
    const options = { name, help, labelNames, registers: [this.registry] };
    return metric.type === "gauge" ? new Gauge(options) : new Counter(options);
  }

  #gauge(name: GaugeName): Gauge {
    const { help, labels, type } = kGauges[name];
    return this.#instrument({ name, help, type } as Metric, [...labels]) as Gauge;
  }

  /** Counters that the daemon itself counts, so that they can be set. */
  #total(name: GaugeName, labels: Record<string, string>, value: number): void {
    const counter = this.#gauge(name) as unknown as Counter;
    const key = `${name} ${JSON.stringify(labels)}`;
    counter.inc(labels, Math.max(0, value - (this.totals.get(key) ?? 0)));
    this.totals.set(key, value);
  }
  private readonly totals = new Map<string, number>();

  #takeSwitch(): void {
    const found = this.source.switchState();
    if (found === undefined) return;
    const { name, ports, state, fdbEntries } = found;
    const { buffer } = state;
    this.#gauge("weir_switch_pool_size_bytes").set({ switch: name }, buffer.total);
    this.#gauge("weir_switch_pool_occupancy_bytes").set({ switch: name }, buffer.occupied);
    this.#gauge("weir_switch_pfc_threshold_bytes").set({ switch: name }, buffer.pfc_threshold);
    this.#gauge("weir_switch_fdb_entries").set({ switch: name }, fdbEntries);
    state.ports.forEach((port, i) => {
      for (let p = 0; p < 8; p++) {
        const labels = { switch: name, port: ports[i] ?? "", priority: String(p) };
        this.#gauge("weir_switch_queue_occupancy_bytes").set(labels, port.queue_bytes[p] ?? 0);
        this.#gauge("weir_switch_pg_occupancy_bytes").set(labels, port.ingress_bytes[p] ?? 0);
        this.#gauge("weir_switch_pg_xoff_room_occupancy_bytes").set(labels, port.headroom_bytes[p] ?? 0);
        this.#gauge("weir_switch_pfc_paused").set({ ...labels, direction: "rx" }, (port.paused >> p) & 1);
        this.#gauge("weir_switch_pfc_paused").set({ ...labels, direction: "tx" }, (port.pausing >> p) & 1);
      }
    });
  }

  #takeQueuePairs(): void {
    const found = this.options.perQp ? this.source.queuePairs() : undefined;
    for (const pair of found?.pairs ?? []) {
      const qpn = `0x${pair.qpn.toString(16).padStart(6, "0")}`;
      const labels = { device: found?.device ?? "", port: "1", qpn, qp: pair.name };
      this.#gauge("weir_qp_rate_bytes_per_second").set(labels, pair.rate / 8);
      this.#gauge("weir_qp_target_rate_bytes_per_second").set(labels, pair.target_rate / 8);
      if (pair.alpha !== null) this.#gauge("weir_qp_alpha").set(labels, pair.alpha);
      for (const [stage, state] of kStages) {
        const now = pair.limited && pair.stage === state ? 1 : 0;
        this.#gauge("weir_qp_rp_stage").set({ ...labels, stage }, now);
      }
      this.#gauge("weir_qp_info").set({ ...labels, peer: pair.peer, remote_qpn: String(pair.remote_qpn) }, 1);
    }
  }

  #takeDaemon(): void {
    for (const { device, name, up, transitions, mac_control, interface_mtu, mtu_changes } of this.source.ports()) {
      this.#gauge("weir_port_up").set({ device, port: name }, up ? 1 : 0);
      this.#total("weir_port_transitions_total", { device, port: name }, transitions);
      if (interface_mtu !== null) this.#gauge("weir_port_mtu_bytes").set({ device, port: name }, interface_mtu);
      this.#total("weir_port_mtu_changes_total", { device, port: name }, mtu_changes);
      if (mac_control.reaches !== "unknown") {
        this.#gauge("weir_port_pfc_possible").set({ device, port: name }, mac_control.reaches === "yes" ? 1 : 0);
      }
    }
    const worker = this.source.worker();
    this.#gauge("weir_worker_loop_gap_max_seconds").set({ worker: worker.name }, worker.loopGapNs / 1e9);
    const { succeeded, failed } = this.source.reloads();
    this.#total("weir_reloads_total", { result: "succeeded" }, succeeded);
    this.#total("weir_reloads_total", { result: "failed" }, failed);
    const { user, system } = process.cpuUsage();
    this.#total("process_cpu_seconds_total", {}, (user + system) / 1e6);
    this.#gauge("process_resident_memory_bytes").set(process.memoryUsage.rss());
    this.#gauge("process_start_time_seconds").set(this.started);
  }
}

const kStages = [
  ["fr", "fast_recovery"],
  ["ai", "additive_increase"],
  ["hai", "hyper_increase"],
] as const;
