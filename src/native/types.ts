/** The typed surface of the native addon: everything that crosses the boundary. Wall-clock ns and wall bit/s throughout. */
import type { NativeNic, NativePath, NativeSwitch } from "./device_types.js";
import type { HistogramSource, NativeHistogram } from "./histogram.js";

/** What an application's queue pair is given with a change of state; see native/transport/queue_attributes.h. */
export interface NativeQueueAttributes {
  state: "reset" | "init" | "rtr" | "rts" | "error";
  domain: number;
  partition_key: number;
  /** Bits: local write 1, remote write 2, remote read 4, remote atomic 8. */
  access: number;
  path_mtu: number;
  remote_qpn: number;
  send_psn: number;
  receive_psn: number;
  timeout: number;
  retry_count: number;
  rnr_retry: number;
  min_rnr_timer: number;
  max_rd_atomic: number;
  max_dest_rd_atomic: number;
  recovery: "go-back-n" | "selective-repeat";
  window: number;
  queue_key: number;
  path: NativePath;
  priority: number;
  /** bit/s; 0: line rate. */
  rate_cap: number;
}

/** Memory outside of V8's heap, which stays where it is; the poll thread reads and writes it too. */
export interface NativeMemory {
  /** Call it once: each call makes another view of the same bytes. */
  buffer(): ArrayBuffer;
  /** Of the first byte. */
  address(): number;
}

export type Polling = "busy" | "adaptive" | "interrupt";

export interface WorkerConfig {
  name: string;
  /** CPU to run on; -1: any. */
  cpu: number;
  seed: number;
  packets: number;
  packet_bytes: number;
  /** Packets of 66 KiB besides. */
  super_frames?: number;
  /** Least ns between two turns of the loop under load, with `interrupt`. */
  quantum: number;
  /**
   * busy: never sleeps; adaptive: yields between turns while frames come and shortly after, then sleeps on descriptors; interrupt:
   * naps of `quantum` under load, sleeps when idle. Absent: interrupt.
   */
  polling?: Polling;
  /** Of a switch that several workers share; then `packets` is this worker's part, and `share` its position. */
  shared?: NativeSharedSwitch;
  share?: number;
  sample_interval: number;
  /** ns after begin() at which distributions start afresh. */
  reset_after: number;
  /** Devices are numbered in this order, switches first: the `device` of records and frames. */
  switches: NativeSwitch[];
  nics: NativeNic[];
}

export interface CounterDescription {
  name: string;
  unit: string;
  help: string;
  labels: Record<string, string>;
}

/** What a worker knows once it has stopped. */
export interface WorkerOutcome {
  /** ns between turns of the poll loop, intended idle sleep left out. */
  loop_gap: NativeHistogram;
  /** ns by which turns came after the deadline they were for. */
  timer_lateness: NativeHistogram;
  host_drops: number;
  record_overflow: number;
  punt_refused: number;
  inject_refused: number;
  /** What the host did not let the worker do: pinning, priority, locked memory. */
  tuning: string[];
  /** Why its loop ended, if it failed. */
  failure?: string;
  /** Queue lengths in bytes over time, of queues that carried anything. */
  queues: (NativeHistogram & { switch: string; port: string; priority: number })[];
}

export interface PuntedFrame {
  device: number;
  port: number;
  at: number;
  bytes: Buffer;
}

/** One entry of a switch's forwarding table. */
export interface ForwardingEntry {
  mac: number;
  /** 0: every VLAN, or untagged. */
  vlan: number;
  /** Next hops; several only for static entries. */
  ports: number[];
  learned: boolean;
  /** ns until a learned entry is forgotten. */
  expires_in?: number;
}

/** A switch at one moment; bytes, by priority 0..7 where arrays. */
export interface SwitchState {
  /** `watermark`: the most that was occupied. */
  buffer: { total: number; shared: number; occupied: number; watermark: number; pfc_threshold: number };
  ports: {
    /** False: the interface is down, gone, or cannot be opened. */
    up: boolean;
    queue_bytes: number[];
    ingress_bytes: number[];
    headroom_bytes: number[];
    /** Masks of priorities: paused by the peer; paused by us. */
    paused: number;
    pausing: number;
  }[];
}

/** A queue pair at one moment; bit/s. */
export interface QueuePairState {
  name: string;
  qpn: number;
  remote_qpn: number;
  state: "idle" | "waiting" | "ready" | "finished";
  /** False: not limited by DCQCN. */
  limited: boolean;
  rate: number;
  target_rate: number;
  alpha: number;
  stage: "fast_recovery" | "additive_increase" | "hyper_increase";
  /** Of an application's queue pair, by the names of metrics.md; those of other queue pairs are in the manifest. */
  counters?: Record<string, number>;
}

/** Kinds of records; see native/engine/record_ring.h for their values. */
export const RecordKind = { queue: 1, transmit: 2, receive: 3, pause: 4, ended: 5, port: 6, stall: 7 } as const;
/** Words of one record in drainRecords(): time, kind, device, index, four values. */
export const kRecordWords = 8;

export interface CaptureConfig {
  /** Bytes of each frame to keep, at most 262,144. */
  snap_length: number;
  /** Between the worker and the reader, a multiple of 8; what finds no room is dropped. */
  ring_bytes: number;
  /** Mask of kCaptureKinds: frames that are of one of these. */
  kinds: number;
  /** How many places frames come from. */
  taps: number;
}

/** See native/io/capture.h. */
export const kCaptureKinds = { roce: 1, cnp: 2, pfc: 4, cnm: 8, other: 16, ce: 32 } as const;

/** What became of the frames of one tap. */
export interface CaptureCounts {
  /** All that passed. */
  seen: number;
  captured: number;
  /** Wanted, but the ring was full. */
  dropped: number;
}

/** Frames on their way from one worker, which need not live any more. */
export interface NativeCapture {
  /** Fills `target`, of at least `snap_length` + 40 bytes, with whole frames (src/capture/frames.ts); returns how many bytes. */
  drain(target: Uint8Array): number;
  /** Of each tap. */
  counts(): CaptureCounts[];
}

/** A native poll thread with its ports and devices. Errors carry code, errno, syscall and hint. */
export interface NativeWorker extends HistogramSource {
  /** Starts the thread and opens its ports; throws if one cannot be opened. */
  open(): void;
  /** Devices start to live; their times count from `at` (monotonicNow() clock). */
  begin(at: number): void;
  /** Senders stop after the packet under way. */
  stopTraffic(): void;
  /** Ends and joins the thread. Idempotent. */
  stop(): void;
  /** stop(), and gives up everything native. Idempotent. */
  close(): void;
  /** Undefined until devices live. */
  manifest(): CounterDescription[] | undefined;
  /**
   * Fills `target` in the order of the manifest, as last published. Returns the time that these counts are of, by monotonicNow():
   * at most 2 ms ago unless the worker fell behind. 0 before devices live.
   */
  readCounters(target: Float64Array): number;
  /** Fills `target` with whole records; returns how many. */
  drainRecords(target: Float64Array): number;
  drainPunted(): PuntedFrame[];
  /** Sends a frame out of a port; false if it was not taken. */
  inject(device: number, port: number, bytes: Uint8Array): boolean;
  /**
   * Applies changed parameters between two turns, here and at `others`, which share the switch and all stand still meanwhile: same
   * devices and ports in the same order. Queues and learned addresses stay; no frame is lost. Throws INVALID_CONFIG when devices or
   * ports differ, or for parameters that a device cannot run with, and FDB_FULL: then nothing has changed.
   */
  reconfigure(config: WorkerConfig, others?: readonly NativeWorker[]): void;
  /** Of switch number `index`, 0-based; so are the next three of a switch and a NIC. Throws RangeError before devices live. */
  forwardingTable(index: number): ForwardingEntry[];
  /** How many that has. */
  forwardingEntries(index: number): number;
  switchState(index: number): SwitchState;
  queuePairs(index: number): QueuePairState[];
  /** The key, local and remote; 0: no place left. `nic` is the position among the NICs, so in all that follows. */
  registerMemory(nic: number, memory: NativeMemory, access: number, domain: number): number;
  /** False when there is no such key. */
  deregisterMemory(nic: number, key: number): boolean;
  /** The number of a new queue pair. Throws NO_RESOURCES. */
  createQueuePair(nic: number, options: { datagram: boolean; send_depth: number; receive_depth: number }): number;
  /** False when there is none of this number. */
  destroyQueuePair(nic: number, qpn: number): boolean;
  /** Throws INVALID_STATE for an illegal transition, INVALID_QPN. */
  modifyQueuePair(nic: number, qpn: number, attributes: NativeQueueAttributes): void;
  /** Throws NO_RESOURCES. */
  createAddressHandle(nic: number, path: NativePath): number;
  /** What was posted to it and is not sent yet fails. False when there is no such handle. */
  destroyAddressHandle(nic: number, handle: number): boolean;
  /** Hands over `count` work requests of kWorkWords each; returns how many were taken. */
  post(nic: number, words: BigUint64Array, count: number): number;
  /** Fills `words` with completions of kCompletionWords each; returns how many. */
  drainCompletions(nic: number, words: BigUint64Array): number;
  /** From open() on: frames of these ports go to `capture` too. One worker to a capture, once. Throws NO_PORT. */
  attach(capture: NativeCapture, places: { tap: number; device: number; port: number }[]): void;
  /** What has been captured waits to be drained. */
  detach(capture: NativeCapture): void;
  /** Longest gap between two turns of the loop so far, ns. */
  worstGap(): number;
  /** The longest of the last 10 to 20 s, as of the last turn. */
  recentGap(): number;
  /** Stops first. */
  outcome(): WorkerOutcome;
}

/** What an interface is and can do, as the kernel tells; what neither it nor the driver tells is left out. */
export interface InterfaceProbe {
  /** As `ip -details link` has it: veth, tun, bridge ...; "": hardware, real or a virtual machine's, or loopback. */
  kind: string;
  /** "": unknown; so with `bus`, its address there. */
  driver: string;
  bus: string;
  /** Bridge or bond that it is a member of, and of what kind that is; "": none. */
  master: string;
  master_kind: string;
  loopback: boolean;
  /** Administratively; and with a carrier. */
  up: boolean;
  running: boolean;
  mtu: number;
  mac: number;
  /** The host has IP addresses there, beyond IPv6's link-local ones. */
  addressed: boolean;
  /** bit/s */
  speed?: number;
  receive_queues?: number;
  transmit_queues?: number;
  /** Descriptors. */
  receive_ring?: number;
  transmit_ring?: number;
  /** By the names that ethtool -K takes. */
  offloads: { [Name in "tso" | "gso" | "gro" | "lro" | "tx" | "rx" | "txvlan" | "rxvlan"]?: boolean };
  /** Flow control of the MAC, by the names of ethtool -A. */
  pause: { autoneg?: boolean; rx?: boolean; tx?: boolean };
  xdp_attached: "none" | "native" | "generic" | "hardware" | "several";
  /** Names of the kernel's netdev.yaml: basic, redirect, ndo-xmit, xsk-zerocopy, hw-offload, rx-sg, ndo-xmit-sg. From Linux 6.3. */
  xdp_features?: string[];
  /** timestamp, hash, vlan-tag. */
  xdp_metadata?: string[];
  /** Why this process gets no AF_XDP socket there, or may not load XDP programs: "EPERM", ...; "": it may. */
  xdp_sockets: string;
  xdp_programs: string;
}

/** What the workers of one switch share. */
export type NativeSharedSwitch = object;

/** What it takes to ask the kernel about interfaces: see interface_probe.ts. */
export interface KernelSockets {
  /**
   * As socket(2), in the network namespace at a path, this process's own if left out; to be closed with fs.closeSync(). Throws why
   * there is none, or why the namespace cannot be entered.
   */
  openSocket(domain: number, type: number, protocol: number, namespacePath?: string): number;
  /** Asks ethtool of an interface of the socket's namespace: `data` starts with the command and gets the answer; at most 2 KiB. */
  ethtool(socket: number, name: string, data: Uint8Array): boolean;
  /** Throws why this process may not load XDP programs. */
  tryXdpProgram(): void;
}

export interface NativeAddon {
  /** `config` of any of the workers; `owner`: the worker of each port. */
  SharedSwitch: new (
    config: WorkerConfig,
    owner: number[],
    workers: number,
  ) => NativeSharedSwitch;
  /**
   * `onDoorbell` is called, at most every 20 ms, while records may wait; and once when punted frames or completions have come,
   * until those are read.
   */
  Worker: new (
    config: WorkerConfig,
    onDoorbell?: () => void,
  ) => NativeWorker;
  Capture: new (config: CaptureConfig) => NativeCapture;
  /** `bytes` > 0 of zeroed memory. */
  Memory: new (
    bytes: number,
  ) => NativeMemory;
  /**
   * The descriptor, to be closed with fs.closeSync(), of a UDP socket of the kernel that drops all that comes to the port.
   * Throws EADDRINUSE, EADDRNOTAVAIL.
   */
  holdUdpPort(address: string, port: number, namespacePath?: string): number;
  /** Asks the kernel; changes nothing. Throws ENODEV, or why `namespacePath` cannot be entered. By interface_probe.ts. */
  probeInterface(name: string, namespacePath?: string): InterfaceProbe;
  /**
   * All threads of this process keep no more than these capabilities (numbers of linux/capability.h) of those that they have, and
   * get none by executing a program: no_new_privs. For good. Throws if a thread cannot be limited.
   */
  limitCapabilities(keep: readonly number[]): void;
  /** sd_notify(3): sends `state` ("READY=1") to the datagram socket at `path`; false if that fails. */
  notify(path: string, state: string): boolean;
  /** CLOCK_MONOTONIC, ns. */
  monotonicNow(): number;
}
