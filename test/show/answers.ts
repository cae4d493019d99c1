/** Answers of a switch and of a NIC as daemons give them. */
import type { ControlRequests, CounterValue, Status } from "../../src/device/protocol.js";
import { kVeth } from "../daemon/probes.js";

const zeros = [0, 0, 0, 0, 0, 0, 0, 0];
export const port = (name: string, up = true) => ({
  name,
  interface: `veth-${name}`,
  namespace: null,
  mac: "02:00:00:00:00:01",
  mtu: 1500,
  rate: name === "a" ? 1e9 : 0,
  up,
  tx_stalled: false,
  rx_stuck: false,
  tx_falls_back: false,
  recoveries: 0,
  interface_mtu: name === "a" ? 9000 : 1500,
  mtu_changes: 0,
  receive: "af_packet" as const,
  transmit: name === "a" ? ("af_xdp" as const) : ("af_packet" as const),
  xdp_mode: null,
  backend_reason: name === "a" ? "a veth that is shaped" : "as configured",
  pfc: name === "a" ? ("works" as const) : ("not possible here" as const),
  mac_control: {
    reaches: name === "a" ? ("yes" as const) : ("no" as const),
    reason: name === "a" ? "a veth passes every frame" : "the MAC obeys PAUSE by itself",
  },
  probe:
    name === "b" ? null : { ...kVeth, mac_control: { reaches: "yes" as const, reason: "a veth passes every frame" } },
});
export const count = (name: string, labels: Record<string, string>, value: number): CounterValue => ({
  name,
  unit: "packets",
  labels,
  value,
});
const onSwitch = (name: string, of: string, value: number) => count(name, { switch: "sw0", port: of }, value);
const inQueue = (name: string, of: string, value: number, priority = "3") =>
  count(name, { switch: "sw0", port: of, priority }, value);

const kStatus: Status = {
  kind: "switch",
  name: "sw0",
  version: "0.1.0",
  pid: 4711,
  uptime_s: 12,
  scale: 1,
  control: "/run/weir/sw0.sock",
  metrics: null,
  dashboard: null,
};

export const kSwitch: Partial<ControlRequests> = {
  ports: [port("a"), port("b", false)],
  counters: {
    since: "2026-01-01T00:00:00.000Z",
    at_ns: 0,
    counters: [
      onSwitch("rx_packets", "a", 10),
      onSwitch("rx_bytes", "a", 1000),
      onSwitch("drop_runt", "a", 2),
      onSwitch("drop_no_route", "a", 3),
      onSwitch("drop_storm_broadcast", "a", 12),
      onSwitch("fdb_evicted", "a", 9),
      onSwitch("fdb_limited", "a", 8),
      onSwitch("tx_packets", "b", 5),
      onSwitch("tx_port_down", "b", 4),
      onSwitch("host_rx_overrun", "a", 7),
      onSwitch("host_tx_errors", "b", 2),
      inQueue("queue_packets", "a", 0),
      inQueue("queue_packets", "b", 200),
      inQueue("queue_bytes", "b", 216_400),
      inQueue("wred_ecn_marked_packets", "b", 3),
      inQueue("cn_cp_transmitted_frames", "b", 200),
      inQueue("cn_cp_transmitted_cnms", "b", 12),
      inQueue("cn_remapped_frames", "a", 4),
      inQueue("queue_watermark_bytes", "b", 61_200),
      inQueue("pg_packets", "a", 200),
      inQueue("pg_watermark_bytes", "a", 50_000),
      inQueue("pfc_rx_packets", "b", 4),
      inQueue("pfc_tx_packets", "a", 7),
      { ...inQueue("pfc_rx_pause_duration", "b", 2.5e6), unit: "ns" },
    ],
  },
  switch: {
    name: "sw0",
    pfc_priorities: [3],
    ecn: { enabled: true, kmin: 5000, kmax: 200_000, pmax: 0.01, priorities: [3] },
    qcn: { enabled: true, priorities: [3], cpQSp: 26_000, cpWeight: 1, cpSampleBase: 150_000 },
    buffer: { total: 12e6, shared: 11e6, occupied: 3000, watermark: 70_000, pfc_threshold: 10e6 },
    ports: [
      {
        ...port("a"),
        queue_bytes: zeros,
        ingress_bytes: zeros.with(3, 3000),
        headroom_bytes: zeros,
        paused: 0,
        pausing: 8,
        max_learned_addresses: 8192,
        storm_control: { broadcast: 10e6, unknown_unicast: 0, multicast: 0 },
      },
      {
        ...port("b"),
        queue_bytes: zeros.with(3, 1500),
        ingress_bytes: zeros,
        headroom_bytes: zeros,
        paused: 8,
        pausing: 0,
        max_learned_addresses: 0,
        storm_control: { broadcast: 0, unknown_unicast: 0, multicast: 0 },
      },
    ],
  },
  qos: {
    pfc_priorities: [3],
    scheduler: { strict: [6], weights: [1, 1, 1, 2, 1, 1, 1, 1] },
    trust: "dscp",
    dscp_map: Array.from({ length: 64 }, (_, dscp) => dscp >> 3),
    default_priority: 0,
    headroom: zeros.with(3, 98_304),
  },
  status: kStatus,
  fdb: [
    { mac: "02:00:00:00:00:01", vlan: 0, ports: ["a"], kind: "learned", expires_in_s: 12.4 },
    { mac: "02:00:00:00:00:02", vlan: 7, ports: ["a", "b"], kind: "static", expires_in_s: null },
  ],
};

const nic = (name: string, value: number) => count(name, { device: "roce0" }, value);
export const kNic: Partial<ControlRequests> = {
  ports: [port("eth1")],
  counters: {
    since: "",
    at_ns: 0,
    counters: [
      nic("tx_packets", 100),
      nic("np_cnp_sent", 1),
      nic("rp_cnp_handled", 2),
      nic("rp_cnm_handled", 21),
      nic("rp_cnm_unknown_flow", 1),
      nic("rp_cnm_truncated", 0),
      count("rp_port_pri_created_rps", { device: "roce0", priority: "3" }, 5),
      count("rp_port_pri_centiseconds", { device: "roce0", priority: "3" }, 150),
      count("rx_prio_pause", { device: "roce0", priority: "3" }, 9),
      count("tx_packets", { device: "roce0", qpn: "0x000011", flow: "to-b" }, 77),
    ],
  },
  status: { ...kStatus, kind: "nic", name: "roce0" },
  qos: {
    pfc_priorities: [],
    scheduler: { strict: [], weights: [1, 1, 1, 1, 1, 1, 1, 1] },
    trust: "pcp",
    dscp_map: zeros,
    default_priority: 3,
    headroom: zeros.with(0, 2_097_152),
  },
  queue_pairs: [
    {
      name: "to-b",
      qpn: 17,
      remote_qpn: 18,
      peer: "b",
      priority: 3,
      state: "ready",
      limited: true,
      rate: 4e8,
      target_rate: 5e8,
      alpha: 0.25,
      stage: "fast_recovery",
      transport: "stream",
      program: null,
    },
  ],
  programs: [
    {
      pid: 812,
      uid: 1000,
      command: "ib_write_bw",
      queue_pairs: 2,
      tx_packets: 90,
      tx_bytes: 92_160,
      rx_packets: 3,
      rx_bytes: 192,
      drop_program_busy: 1,
      drop_program_packet: 0,
    },
  ],
};
