/** Interfaces as the kernel describes them. */
import type { InterfaceProbe } from "../../src/native/types.js";

export const kVeth: InterfaceProbe = {
  kind: "veth",
  driver: "veth",
  bus: "",
  master: "",
  master_kind: "",
  loopback: false,
  up: true,
  running: true,
  mtu: 1500,
  mac: 0x02_57_00_00_00_01,
  addressed: false,
  speed: 10e9,
  receive_queues: 1,
  transmit_queues: 1,
  offloads: { tso: true, gso: true, gro: false, lro: false, tx: true, rx: true, txvlan: true, rxvlan: true },
  pause: {},
  xdp_attached: "none",
  xdp_features: ["basic", "redirect", "rx-sg"],
  xdp_metadata: ["timestamp", "hash", "vlan-tag"],
  xdp_sockets: "",
  xdp_programs: "",
  live_frames: "",
  peer_xdp: false,
};

/** A NIC with native XDP. */
export const kHardware: InterfaceProbe = {
  ...kVeth,
  kind: "",
  driver: "ice",
  bus: "0000:03:00.0",
  speed: 100e9,
  receive_ring: 2048,
  transmit_ring: 256,
  offloads: { ...kVeth.offloads, rxvlan: false },
  pause: { autoneg: false, rx: false, tx: false },
  xdp_features: ["basic", "redirect", "ndo-xmit", "xsk-zerocopy", "rx-sg", "ndo-xmit-sg"],
};
