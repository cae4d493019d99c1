/** What a switch or a NIC of the native core is configured with. Wall-clock ns and wall bit/s throughout. */
import type { AlgorithmName } from "../congestion/algorithms.js";
import type { DcqcnParameters } from "../congestion/dcqcn.js";
import type { DctcpParameters } from "../congestion/dctcp.js";

/** Frames impaired on purpose; probabilities 0..1, times in ns. */
export interface NativeImpairment {
  loss: number;
  duplicate: number;
  corrupt: number;
  reorder: number;
  delay: number;
  jitter: number;
  reorder_delay: number;
  /** Keys its random streams. */
  component: number;
}

export type NativeBackend = "af_packet" | "af_xdp";

export interface NativePort {
  /** Name in counter labels: the peer's. */
  name: string;
  interface: string;
  /** Descriptor of the network namespace; -1: the process's own. */
  namespace_fd: number;
  /** The same by its path, which is looked up anew when the port is opened again. */
  namespace_path?: string;
  slot_bytes: number;
  receive_slots: number;
  /** What frames come in by, and go out by; absent: af_packet. */
  receive?: NativeBackend;
  transmit?: NativeBackend;
  /** Where the XDP program of AF_XDP reception runs: in the driver, or above it; absent: native. */
  xdp_mode?: "native" | "generic";
  /** Frames in each ring of AF_XDP, a power of two from 64 to 4096; absent: 512. */
  ring?: number;
  /** Of the link, bit/s; 0: unlimited. */
  rate: number;
  /** Propagation, ns. */
  delay: number;
  impairment?: NativeImpairment;
  /** With roce_only: ARP (of AF_XDP; else all arrives) and pings for this IPv4 address are for the NIC, and not for the kernel. */
  arp_address?: number;
  /** With roce_only, of a packet socket: IPv6 pings arrive. */
  echo_ipv6?: boolean;
  /** Partial checksums and super-frames of the kernel pass (PACKET_VNET_HDR); needs super_frames. */
  offloads?: boolean;
  /** The host's own stack uses the interface too: only RoCEv2, ARP, MAC control frames, CNMs and what ICMP says of RoCEv2 are received. */
  roce_only?: boolean;
}

export interface NativeSwitchPort extends NativePort {
  /** Most that each egress queue may send, bit/s, 8 entries; 0: no limit. */
  priority_rates?: number[];
  /** Most bytes that each egress queue may hold, 8 entries; 0: no limit. */
  queue_limits?: number[];
  /** Most addresses that are learned at it; absent: no limit. */
  max_learned_addresses?: number;
  /** Most that is flooded of what comes in, bit/s: broadcast, unknown unicast, multicast; 0: no limit. */
  storm_rates?: number[];
  /** Of CNPVs; absent: interior. 8 entries each: 0 disabled, 1 interior, 2 interior ready, 3 edge; alternate priorities at edge. */
  cn?: { defence: number[]; alternate: number[] };
  mtu: number;
  mac: number;
}

export interface NativePriorityMap {
  trust: "dscp" | "pcp" | "port";
  /** 64 entries. */
  dscp: number[];
  /** 8 entries. */
  pcp: number[];
  fallback: number;
}

export interface NativeScheduler {
  /** Bit mask of priorities. */
  strict: number;
  /** 8 entries. */
  weights: number[];
}

export interface NativeSwitch {
  name: string;
  ports: NativeSwitchPort[];
  buffer: {
    total: number;
    headroom: number;
    priorities: number;
    beta: number;
    threshold: "dynamic" | "static";
    fixed_threshold: number;
    xon_offset: number;
    lossy_alpha: number;
    lateness_headroom: number;
  };
  pfc_priorities: number;
  ecn_priorities: number;
  mark_on_dequeue: boolean;
  red: { kmin: number; kmax: number; pmax: number; averaged: boolean; weight: number };
  /** QCN; absent: off. */
  cn?: {
    /** Mask of congestion notification priority values, at most 7. */
    priorities: number;
    /** Of CNMs, made here or passing: none of those, and one that is served strictly. */
    cnm_priority: number;
    /** Octets of the sampled frame in a CNM, 0..64. */
    min_header_octets: number;
    /** cpQSp, bytes. */
    queue_set_point: number;
    /** cpWeight, log2. */
    weight: number;
    /** cpSampleBase, bytes. */
    sample_base: number;
  };
  scheduler: NativeScheduler;
  priority_map: NativePriorityMap;
  learning: boolean;
  ageing: number;
  /** Of marking, and of the choice among next hops. */
  seed: number;
  hash_seed: number;
  component: number;
  routes: { destination_mac: number; ports: number[] }[];
  pins: { source_mac: number; destination_mac: number; port: number }[];
}

/** What the reaction point runs on; the same fields as a resolved profile, in wall units. */
export type NativeReactionPoint = Omit<DcqcnParameters, "min_time_between_cnps">;

/** What reaction points of QCN run on, in wall units, and which there are; see native/endpoint/nic_parameters.h. */
export interface NativeQcn {
  variant: "qcn" | "timer" | "aimd";
  rpg_time_reset: number;
  rpg_byte_reset: number;
  rpg_threshold: number;
  hyper_threshold: number;
  rpg_ai_rate: number;
  rpg_hai_rate: number;
  /** 0: line rate. */
  rpg_max_rate: number;
  rpg_min_rate: number;
  gd: number;
  rpg_min_dec_fac: number;
  /** Bit mask of priorities of congestion notification. */
  priorities: number;
  flows: "qp" | "application" | "destination-mac" | "five-tuple";
  /** Most of a priority. */
  reaction_points: number;
  cn_tag: boolean;
  limiter: "pacer" | "token-bucket";
  /** Between two additions of tokens, ns. */
  token_tick: number;
  seed: number;
  component: number;
}

export interface NativePath {
  destination_mac: number;
  source_mac: number;
  tagged: boolean;
  vlan_tci: number;
  ip_version: 4 | 6;
  source_ip: Uint8Array;
  destination_ip: Uint8Array;
  dscp: number;
  ecn: number;
  udp_source_port: number;
}

export interface NativeQueuePair {
  /** Name in counter labels: the flow's. */
  name: string;
  remote_qpn: number;
  path: NativePath;
  priority: number;
  operation: "write" | "send";
  path_mtu: number;
  message_bytes: number;
  /** 0: no end. */
  total_bytes: number;
  first_psn: number;
  /** ns after begin(); absent: only receives. */
  start?: number;
  stop?: number;
  /** 0: line rate. */
  rate_cap: number;
  remote_address: number;
  remote_key: number;
  /** Its own, instead of the path's; the NIC receives what is sent to it. */
  source_mac?: number;
  /** With `flows: "application"`, queue pairs of one number are one flow; absent: 0. */
  application?: number;
}

export interface NativeNic {
  name: string;
  port: NativePort;
  /** Most time that a late NIC makes up for, ns. */
  arrears: number;
  mac: number;
  first_qpn: number;
  congestion_control: AlgorithmName;
  /** With dcqcn. */
  dcqcn?: NativeReactionPoint;
  /** With qcn. */
  qcn?: NativeQcn;
  /** With dctcp, which is of reliable flows of simulations. */
  dctcp?: DctcpParameters;
  cnp_interval: number;
  cnp_dscp: number;
  cnp_priority: number;
  line_rate_start: boolean;
  initial_rate: number;
  pfc_priorities: number;
  scheduler: NativeScheduler;
  priority_map: NativePriorityMap;
  receive_buffer: { size: number; drain: number; xoff: number; xon: number };
  queue_pairs: NativeQueuePair[];
  /** Places for queue pairs and memory regions of applications; absent: none. */
  verbs?: {
    queue_pairs: number;
    memory_regions: number;
    /** Own ones, by their IP versions: datagrams to others are not taken. */
    addresses: { version: number; bytes: Uint8Array }[];
  };
}
