/** Answers of a switch and of a NIC as daemons give them. */
import type { ControlRequests, CounterValue, Status } from "../../src/device/protocol.js";
import type { Tsa } from "../../src/lldp/dcb_tlv.js";
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

const kEts = {
  prio_tc: [0, 1, 2, 3, 4, 5, 6, 7],
  bandwidth: [60, 0, 0, 40, 0, 0, 0, 0],
  tsa: ["ets", "strict", "strict", "ets", "strict", "strict", "strict", "strict"] as Tsa[],
};
const kAgent = {
  frames_out: 5,
  frames_out_refused: 0,
  frames_in: 3,
  frames_limited: 0,
  frames_discarded: 1,
  frames_in_errors: 2,
  tlvs_discarded: 4,
  tlvs_unrecognized: 0,
  ageouts: 0,
  too_many_neighbours: 0,
};
const kDcbxPort = {
  willing: false,
  peers: 0,
  local: { pfc: [3], ets: kEts, roce_priority: 3 },
  peer: null,
  peer_roce_priority: null,
  operational: { pfc: { from: "local" as const, priorities: [3] }, ets: { from: "local" as const, ...kEts } },
  congestion: {},
  mismatches: [],
};

const kUsual = {
  ecn: { kmin: 5000, kmax: 200_000, pmax: 0.01 },
  buffer: { headroom: 22_400, beta: 8, threshold: 0, xon_offset: 3000, lossy_alpha: 1 },
  qcn: { cpQSp: 26_000, cpWeight: 1, cpSampleBase: 150_000 },
};

export const kSwitch: Partial<ControlRequests> = {
  lldp: {
    enabled: true,
    chassis: "02:00:00:00:00:01",
    tx_interval_s: 30,
    tx_hold: 4,
    ports: [
      {
        port: "a",
        neighbours: [
          {
            chassis: "02:00:00:00:00:02",
            port: "eth0\u001b[2J",
            mac: "02:00:00:00:00:02",
            system_name: "host",
            system_description: null,
            port_description: null,
            capabilities: ["bridge", "station"],
            management_addresses: [],
            ttl_s: 120,
            expires_in_s: 99.4,
          },
        ],
        ...kAgent,
      },
      {
        port: "b",
        neighbours: [],
        ...kAgent,
        frames_in: 0,
        frames_discarded: 0,
        frames_in_errors: 0,
        tlvs_discarded: 0,
      },
    ],
  },
  dcbx: {
    enabled: true,
    ports: [
      {
        ...kDcbxPort,
        port: "a",
        willing: true,
        peers: 1,
        peer: {
          neighbour: "host",
          its_port: "eth0",
          pfc: { willing: false, mbc: false, capability: 8, priorities: [] },
          recommendation: { ...kEts, prio_tc: [0, 0, 1, 3, 3, 3, 3, 3] },
        },
        peer_roce_priority: 5,
        operational: { ...kDcbxPort.operational, pfc: { from: "peer", priorities: [] } },
        congestion: { 3: "interior" },
        mismatches: [{ of: "roce-priority", local: 3, peer: 5 }],
      },
      { ...kDcbxPort, port: "b" },
    ],
  },
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
      onSwitch("drop_vlan_untagged", "a", 3),
      onSwitch("drop_vlan_egress", "a", 1),
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
      inQueue("pfc_wd_storm_detected", "b", 2),
      inQueue("pfc_wd_storm_restored", "b", 1),
      inQueue("pfc_wd_tx_drop", "b", 17),
      inQueue("pfc_wd_rx_drop", "b", 5),
      { ...inQueue("pfc_rx_pause_duration", "b", 2.5e6), unit: "ns" },
    ],
  },
  switch: {
    name: "sw0",
    pfc_priorities: [3],
    ecn: { enabled: true, kmin: 5000, kmax: 200_000, pmax: 0.01, priorities: [3] },
    qcn: { enabled: true, priorities: [3], cpQSp: 26_000, cpWeight: 1, cpSampleBase: 150_000 },
    pfc_watchdog: { enabled: true, detection_time: 200e6, restoration_time: 400e6, action: "drop" },
    buffer: { total: 12e6, shared: 11e6, occupied: 3000, watermark: 70_000, pfc_threshold: 10e6 },
    thresholds: { mode: "dynamic", priorities: 8 },
    ports: [
      {
        ...port("a"),
        queue_bytes: zeros,
        ingress_bytes: zeros.with(3, 3000),
        headroom_bytes: zeros,
        paused: 0,
        pausing: 8,
        pfc_storms: 0,
        max_learned_addresses: 8192,
        storm_control: { broadcast: 10e6, unknown_unicast: 0, multicast: 0 },
        vlans: { untagged: 10, tagged: [20] },
        profile: null,
        settings: kUsual,
      },
      {
        ...port("b"),
        queue_bytes: zeros.with(3, 1500),
        ingress_bytes: zeros,
        headroom_bytes: zeros,
        paused: 8,
        pausing: 0,
        pfc_storms: 8,
        max_learned_addresses: 0,
        storm_control: { broadcast: 0, unknown_unicast: 0, multicast: 0 },
        vlans: { untagged: 0, tagged: [10] },
        profile: "uplink",
        settings: {
          ...kUsual,
          ecn: { kmin: 50_000, kmax: 400_000, pmax: 0.1 },
          buffer: { ...kUsual.buffer, headroom: 60_000, beta: 2 },
        },
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
    port_headroom: {},
  },
  status: kStatus,
  fdb: [
    { mac: "02:00:00:00:00:01", vlan: 0, ports: ["a"], kind: "learned", expires_in_s: 12.4 },
    { mac: "02:00:00:00:00:02", vlan: 7, ports: ["a", "b"], kind: "static", expires_in_s: null },
  ],
};

const nic = (name: string, value: number) => count(name, { device: "roce0" }, value);
export const kNic: Partial<ControlRequests> = {
  lldp: { enabled: false, chassis: null, tx_interval_s: 0, tx_hold: 0, ports: [] },
  dcbx: { enabled: false, ports: [] },
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
    port_headroom: {},
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
      window: 12.34,
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
