/**
 * Maps the native counters to Prometheus: the one place that knows both names. Endpoint metrics are called as
 * rdma_exporter calls them, `rdma_<mlx5 counter>_total`, so that dashboards made for it work; switch metrics carry the stems
 * of SAI statistics. Counters that neither of them has are under `weir_`.
 */
import { reasonOf } from "../../native/counters.js";
import type { CounterDescription } from "../../native/types.js";

/** Owner of a counter: the set of its native labels. */
export type Scope = "switch_port" | "switch_priority" | "nic" | "nic_priority" | "queue_pair" | "impairment";

export interface Metric {
  name: string;
  type: "counter" | "gauge";
  /** Native labels that are kept, by the names that they get. */
  labels: Readonly<Record<string, string>>;
  /** Labels that are the same for every series of this counter. */
  fixed: Readonly<Record<string, string>>;
  /** The native value is multiplied by this. */
  scale: number;
  /** Unit of the series. */
  unit: string;
  help: string;
}

interface Target {
  name: string;
  /** Unit of the series; the counter's if left out. */
  unit?: string;
  fixed?: Record<string, string>;
  scale?: number;
  /** Help, where one metric takes in several counters. */
  help?: string;
}

const kScopes: Readonly<Record<string, Scope>> = {
  "port switch": "switch_port",
  "port priority switch": "switch_priority",
  device: "nic",
  "device priority": "nic_priority",
  "device flow qpn": "queue_pair",
  "device port": "impairment",
};

/** Native label -> label of the series. A soft NIC has one port, `port="1"`. */
const kLabels: Readonly<Record<Scope, Readonly<Record<string, string>>>> = {
  switch_port: { switch: "switch", port: "port" },
  switch_priority: { switch: "switch", port: "port", priority: "priority" },
  nic: { device: "device" },
  nic_priority: { device: "device", priority: "priority" },
  queue_pair: { device: "device", qpn: "qpn", flow: "qp" },
  impairment: { device: "device", port: "port" },
};

const rx = { direction: "rx" };
const tx = { direction: "tx" };
/** Two counters that share a metric, by `direction`; %: rx or tx. */
const bothWays = (counter: string, target: Target): Record<string, Target> => ({
  [counter.replace("%", "rx")]: { ...target, fixed: rx },
  [counter.replace("%", "tx")]: { ...target, fixed: tx },
});
const kStack = "Frames that the host's own network stack gave to send: tx; that it has taken: rx";
const kAcks = "Acknowledgements: received (rx), sent (tx); NAKs among those received";
const kSuperFrames = "Frames that carry several packets: rx came whole, tx were made of single packets";
const kPfcFrames = "PFC frames that speak of this priority: received (rx), sent (tx)";
const kPaused = "Time that this port might not send at this priority (rx), and that it kept its peer from it (tx)";
const kTransitions =
  "Times this port stopped its peer at this priority (tx), and times that a pause of its own ended (rx)";
const kDrops = "Frames dropped, by reason; docs/reference/metrics.md has the reasons";
const kRefusedCnms = "CNMs received that changed no rate, by reason; docs/reference/metrics.md has the reasons";

/** Counters that are not called by their scope's rule. */
const kTargets: Readonly<Record<Scope, Readonly<Record<string, Target>>>> = {
  switch_port: {
    tx_stall_duration: { name: "weir_switch_port_tx_stall_seconds_total", scale: 1e-9, unit: "seconds" },
  },
  switch_priority: {
    wred_ecn_marked_packets: { name: "weir_switch_queue_wred_ecn_marked_packets_total" },
    ...bothWays("pfc_%_packets", { name: "weir_switch_pfc_frames_total", help: kPfcFrames }),
    ...bothWays("pfc_%_transitions", { name: "weir_switch_pfc_pause_transitions_total", help: kTransitions }),
    ...bothWays("pfc_%_pause_duration", {
      name: "weir_switch_pfc_pause_seconds_total",
      ...{ scale: 1e-9, unit: "seconds", help: kPaused },
    }),
  },
  nic: {
    rp_cur_flows: { name: "weir_rp_cur_flows" },
    rp_cnm_handled: { name: "weir_nic_rp_cnm_handled_total" },
    rp_cnm_ignored: { name: "weir_nic_rp_cnm_ignored_total" },
    rx_icrc_encapsulated: { name: "rdma_rx_icrc_encapsulated_total" },
    np_crowded_roce_packets: { name: "weir_nic_np_crowded_roce_packets_total" },
    rx_punted: { name: "weir_nic_rx_punted_packets_total" },
    ...bothWays("stack_%_packets", { name: "weir_nic_stack_packets_total", help: kStack }),
    neighbor_full: { name: "weir_nic_neighbor_full_total" },
    neighbor_unsent: { name: "weir_nic_neighbor_unsent_total" },
    stragglers: { name: "weir_nic_stragglers_total" },
    retransmitted: { name: "weir_nic_retransmitted_packets_total" },
    ...bothWays("%_acks", { name: "weir_nic_ack_packets_total", help: kAcks }),
    tx_naks: { name: "weir_nic_nak_sent_packets_total" },
    req_remote_operation_errors: { name: "weir_nic_req_remote_operation_errors_total" },
    resp_invalid_requests: { name: "weir_nic_resp_invalid_requests_total" },
    resp_local_operation_errors: { name: "weir_nic_resp_local_operation_errors_total" },
    tx_stall_duration: { name: "weir_nic_tx_stall_seconds_total", scale: 1e-9, unit: "seconds" },
    host_tx_live: { name: "weir_nic_host_tx_live_packets_total" },
    rx_stamps_corrected: { name: "weir_nic_rx_stamps_corrected_packets_total" },
    ...bothWays("%_super_frames", { name: "weir_nic_super_frames_total", help: kSuperFrames }),
    tx_no_descriptor: { name: "weir_nic_tx_no_descriptor_total" },
  },
  nic_priority: {
    ...bothWays("%_prio_packets", { name: "weir_nic_prio_packets_total", help: "Frames at this priority: rx, tx" }),
    ...bothWays("%_prio_bytes", {
      name: "weir_nic_prio_bytes_total",
      help: "Bytes at this priority, without FCS: rx, tx",
    }),
    ...bothWays("%_prio_pause", { name: "rdma_roce_pfc_pause_frames_total", help: kPfcFrames }),
    ...bothWays("%_prio_pause_duration", {
      name: "rdma_roce_pfc_pause_duration_total",
      ...{ scale: 1e-3, unit: "microseconds", help: `${kPaused}; in microseconds as rdma_exporter has it` },
    }),
    rx_prio_pause_transition: { name: "rdma_roce_pfc_pause_transitions_total", fixed: rx },
    tx_prio_stack_packets: { name: "weir_nic_prio_stack_packets_total", fixed: tx },
    tx_prio_stack_bytes: { name: "weir_nic_prio_stack_bytes_total", fixed: tx },
    tx_prio_stack_discard: { name: "weir_nic_prio_stack_discard_packets_total", fixed: tx },
    rx_prio_buf_discard: { name: "weir_nic_prio_buf_discard_packets_total", fixed: rx },
    rp_port_pri_created_rps: { name: "weir_nic_rp_port_pri_created_rps_total" },
    rp_port_pri_centiseconds: { name: "weir_nic_rp_port_pri_seconds_total", scale: 1e-2, unit: "seconds" },
  },
  queue_pair: {
    cnp_sent: { name: "weir_qp_cnp_tx_total" },
    cnp_handled: { name: "weir_qp_cnp_rx_total" },
    lost: { name: "weir_qp_lost_packets_total" },
    duplicate: { name: "weir_qp_duplicate_packets_total" },
    ecn_marked: { name: "weir_qp_ecn_marked_packets_total" },
  },
  impairment: {},
};

const kPrefixes: Readonly<Record<Scope, string>> = {
  switch_port: "weir_switch_port_",
  switch_priority: "weir_switch_",
  nic: "rdma_",
  nic_priority: "rdma_netdev_",
  queue_pair: "weir_qp_",
  impairment: "weir_impairment_",
};

const kDropped: Readonly<Partial<Record<Scope, string>>> = {
  switch_port: "weir_switch_port_dropped_packets_total",
  nic: "weir_nic_dropped_packets_total",
};

export function scopeOf(labels: Readonly<Record<string, string>>): Scope | undefined {
  return kScopes[Object.keys(labels).sort().join(" ")];
}

/** Counters of queue pairs: one series for each, so they are off unless asked for. */
export const perQueuePair = (scope: Scope) => scope === "queue_pair";

/** Names a counter by the table above, or by a rule that follows from what it means. */
export function metricOf(scope: Scope, counter: Omit<CounterDescription, "labels">): Metric {
  const { name, unit, meaning, help } = counter;
  const target = kTargets[scope][name] ?? byRule(scope, counter);
  const endpoint = scope === "nic" || scope === "nic_priority" || scope === "queue_pair";
  return {
    name: target.name,
    type: meaning === "gauge" ? "gauge" : "counter",
    labels: kLabels[scope],
    fixed: { ...(endpoint && { port: "1" }), ...target.fixed },
    scale: target.scale ?? 1,
    unit: target.unit ?? unit,
    help: target.help ?? help,
  };
}

/** Reasons share a metric, by `reason`; mlx5 has no counter of NICs' frames that the host refused or lost. */
function byRule(scope: Scope, { name, unit, meaning }: Omit<CounterDescription, "labels">): Target {
  const fixed = { reason: reasonOf(name) };
  const dropped = kDropped[scope];
  if (dropped !== undefined && meaning === "drop") return { name: dropped, fixed, help: kDrops };
  if (meaning === "cnm_refused") return { name: "weir_nic_rp_cnm_refused_total", fixed, help: kRefusedCnms };
  if (
    scope === "nic" &&
    (meaning === "overrun" || meaning === "refused" || meaning === "thrown" || meaning === "down")
  ) {
    return { name: `weir_nic_${name}_${unit}_total` };
  }
  return { name: `${kPrefixes[scope]}${name}${meaning === "gauge" ? "" : "_total"}` };
}

/** The counters of kTargets: none may outlive its counter. */
export const kMapped: readonly (readonly [Scope, string])[] = Object.entries(kTargets).flatMap(([scope, targets]) =>
  Object.keys(targets).map((name) => [scope as Scope, name] as const),
);
