/** Metrics that do not come from the native counters: states read at the scrape, and the daemon's own. */

interface Definition {
  type: "counter" | "gauge";
  labels: readonly string[];
  unit: string;
  help: string;
}

const port = ["switch", "port", "priority"] as const;
const qp = ["device", "port", "qpn", "qp"] as const;
const gauge = (unit: string, labels: readonly string[], help: string): Definition => ({
  type: "gauge",
  labels,
  unit,
  help,
});
const total = (unit: string, labels: readonly string[], help: string): Definition => ({
  type: "counter",
  labels,
  unit,
  help,
});

export const kGauges = {
  weir_build_info: gauge("", ["version", "node", "arch", "kind"], "Always 1; its labels tell which Weir this is"),
  weir_port_up: gauge("", ["device", "port"], "1 while the interface of this port is up, 0 while it is down or gone"),
  weir_port_stalled: gauge(
    "",
    ["device", "port", "direction"],
    "1 while frames wait that do not pass: tx, the host takes none to send; rx, what arrives is not taken from the host",
  ),
  weir_port_rate_bytes_per_second: gauge(
    "bytes per second",
    ["device", "port"],
    "Rate of the link; none where it is unlimited",
  ),
  weir_port_transitions_total: total(
    "events",
    ["device", "port"],
    "Times the interface of this port went down or came up",
  ),
  weir_port_mtu_bytes: gauge(
    "bytes",
    ["device", "port"],
    "MTU of the interface of this port; none where it is unknown",
  ),
  weir_port_mtu_changes_total: total(
    "events",
    ["device", "port"],
    "Times the MTU of the interface of this port changed",
  ),
  weir_port_pfc_possible: gauge(
    "",
    ["device", "port"],
    "1 while PFC frames that arrive here reach Weir, 0 if PFC is not possible here; none where that is unknown",
  ),
  weir_lldp_neighbours: gauge(
    "",
    ["device", "port"],
    "Neighbours that LLDP knows of at this port; none where it is off",
  ),
  weir_dcbx_mismatch: gauge(
    "",
    ["device", "port", "of"],
    "1 while this port and its peer have different ones, and neither gives way: pfc, or roce-priority; none where DCBX is off",
  ),
  weir_lldp_frames_total: total(
    "packets",
    ["device", "port", "what"],
    "LLDPDUs: sent, received; and of those received, limited (more than 32 in a second), discarded and with_errors",
  ),
  weir_switch_pool_size_bytes: gauge("bytes", ["switch"], "Packet memory of the switch"),
  weir_switch_pool_occupancy_bytes: gauge("bytes", ["switch"], "Packet memory in use now"),
  weir_switch_pool_watermark_bytes: gauge("bytes", ["switch"], "Most packet memory that was in use"),
  weir_switch_pfc_threshold_bytes: gauge("bytes", ["switch"], "t_PFC now: a lossless ingress queue above it is paused"),
  weir_switch_ecn_min_threshold_bytes: gauge(
    "bytes",
    ["switch", "priority"],
    "Kmin: queues shorter than this are not marked; none where ECN is off",
  ),
  weir_switch_ecn_max_threshold_bytes: gauge(
    "bytes",
    ["switch", "priority"],
    "Kmax: in queues longer than this everything is marked; none where ECN is off",
  ),
  weir_switch_pfc_enabled: gauge("", ["switch", "priority"], "1 for the priorities that PFC keeps without loss"),
  weir_switch_fdb_entries: gauge("entries", ["switch"], "Addresses in the forwarding table"),
  weir_switch_queue_occupancy_bytes: gauge("bytes", port, "Bytes in this egress queue now"),
  weir_switch_pg_occupancy_bytes: gauge("bytes", port, "Bytes held of this ingress priority group now"),
  weir_switch_pg_xoff_room_occupancy_bytes: gauge("bytes", port, "Bytes of this group in its PFC headroom now"),
  weir_switch_pfc_paused: gauge(
    "",
    [...port, "direction"],
    "1 while paused: rx, the peer has stopped this port; tx, this port has stopped its peer",
  ),
  weir_nic_pfc_enabled: gauge("", ["device", "port", "priority"], "1 for the priorities that PFC keeps without loss"),
  weir_queue_pairs: gauge("queue pairs", ["device", "port"], "Queue pairs, with series of their own or not"),
  weir_programs: gauge("programs", ["device", "port"], "Programs that use the NIC by libibverbs"),
  weir_program_dropped_packets_total: total(
    "packets",
    ["device", "port", "pid", "command", "reason"],
    "With `metrics.per_qp`: packets of a program that were dropped: busy, it does not take them; packet, it may not send them",
  ),
  weir_qp_info: gauge(
    "",
    [...qp, "peer", "remote_qpn", "transport", "pid"],
    "Always 1; its labels tell whom a queue pair talks to, and whose it is: pid is empty for the NIC's own",
  ),
  weir_qp_rate_bytes_per_second: gauge("bytes per second", qp, "Rate that this queue pair may send at now"),
  weir_qp_target_rate_bytes_per_second: gauge("bytes per second", qp, "Target rate R_T of the reaction point"),
  weir_qp_alpha: gauge(
    "",
    qp,
    "Congestion estimate alpha of DCQCN's reaction point, 0 to 1; none under QCN and without congestion control",
  ),
  weir_qp_congestion_window_packets: gauge(
    "packets",
    qp,
    "Congestion window of DCTCP, Swift, HPCC and NSCC; none of others, and before the queue pair sends",
  ),
  weir_qp_rp_stage: gauge("", [...qp, "stage"], "1 for the stage that the rate increase is in: fr, ai or hai"),
  rdma_port_info: gauge(
    "",
    ["device", "port", "netdev", "link_layer", "state", "phys_state", "link_speed"],
    "Always 1; its labels describe the NIC's port as rdma_exporter does",
  ),
  node_infiniband_state_id: gauge("", ["device", "port"], "State of the NIC's port: 4 active, 1 down"),
  node_infiniband_physical_state_id: gauge(
    "",
    ["device", "port"],
    "Physical state of the NIC's port: 5 link up, 3 disabled",
  ),
  node_infiniband_rate_bytes_per_second: gauge("bytes per second", ["device", "port"], "Rate of the NIC's port"),
  weir_worker_loop_gap_max_seconds: gauge(
    "seconds",
    ["worker"],
    "Longest gap between two turns of the poll loop so far",
  ),
  weir_lab_scale: gauge(
    "",
    [],
    "Of a lab: the network that is meant is so many times as fast, and its times so many times shorter, as all that is told here",
  ),
  weir_reloads_total: total("events", ["result"], "Reloads on SIGHUP, by result"),
  process_cpu_seconds_total: total("seconds", [], "CPU time of the daemon, or lab"),
  process_resident_memory_bytes: gauge("bytes", [], "Resident memory of the daemon, or lab"),
  process_start_time_seconds: gauge("seconds", [], "Start of the daemon or lab, seconds since the epoch"),
} as const satisfies Record<string, Definition>;

export type GaugeName = keyof typeof kGauges;
