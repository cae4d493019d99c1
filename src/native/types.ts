/** The typed surface of the native addon: everything that crosses the boundary. Wall-clock ns and wall bit/s throughout. */
import type {
  CaptureConfig,
  CapturePlace,
  NativeNic,
  NativePath,
  NativePort,
  NativeQueueAttributes,
  NativeQueuePairOptions,
  ProgramAnswer,
  ProgramChange,
  ProgramWay,
  WorkerConfig,
} from "./configuration.js";
import type { NativeFault, NativeIpAddress } from "./fault_configuration.js";
import type { HistogramSource } from "./histogram.js";
import {
  type CaptureCounts,
  type CounterDescription,
  type FaultState,
  type ForwardingEntry,
  kRecord,
  type LentPath,
  type NeighborEntry,
  type OperationTimes,
  type PeerCredentials,
  type ProgramOpening,
  type ProgramRequest,
  type ProgramState,
  type PuntedFrame,
  type QueuePairState,
  type SwitchState,
  type WorkerOutcome,
} from "./reports.js";

export * from "./configuration.js";
export * from "./fault_configuration.js";
export * from "./neighbour_configuration.js";
export * from "./reports.js";
export * from "./traffic_configuration.js";
export * from "./transport_configuration.js";

/** Memory outside of V8's heap, which stays where it is; the poll thread reads and writes it too. */
export interface NativeMemory {
  /** Call it once: each call makes another view of the same bytes. */
  buffer(): ArrayBuffer;
  /** Address of the first byte. */
  address(): number;
}

export type Polling = NonNullable<WorkerConfig["polling"]>;
export type NativeQueuePair = NativeNic["queue_pairs"][number];
export type NativeBackend = NonNullable<NativePort["receive"]>;

/** Words of one record in drainRecords(). */
export const kRecordWords = kRecord.words;

/** Bits of kinds of frames: see native/io/capture.h. */
export const kCaptureKinds = { roce: 1, cnp: 2, pfc: 4, cnm: 8, other: 16, ce: 32 } as const;

/** Frames on their way from one worker, which need not live any more. */
export interface NativeCapture {
  /** Fills `target`, of at least `snap_length` + 40 bytes, with whole frames (src/device/capture/frames.ts); returns how many bytes. */
  drain(target: Uint8Array): number;
  /** Counts of each tap. */
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
  /** Does stop(), and gives up everything native. Idempotent. */
  close(): void;
  /** Returns undefined until devices live. */
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
  /** Table of switch number `index`, 0-based, as in the next three of a switch and a NIC. Throws RangeError before devices live. */
  forwardingTable(index: number): ForwardingEntry[];
  /** Number of entries in that table. */
  forwardingEntries(index: number): number;
  /** Neighbors of a switch that routes; empty: it does not. */
  neighbors(index: number): NeighborEntry[];
  switchState(index: number): SwitchState;
  queuePairs(index: number): QueuePairState[];
  /** Programs that use a NIC. */
  programs(index: number): ProgramState[];
  /** Returns the key, local and remote; 0: no place is left. `nic` is the position among the NICs, so in all that follows. */
  registerMemory(nic: number, memory: NativeMemory, access: number, domain: number): number;
  /** Returns false when there is no such key. */
  deregisterMemory(nic: number, key: number): boolean;
  /** Opens the NIC to a program whose transport runs in its own process; descriptors end with closeProgram(). Throws NO_RESOURCES. */
  openProgram(nic: number): ProgramOpening;
  /** Ends a program and its queue pairs. False when there is none of this number. */
  closeProgram(nic: number, number: number): boolean;
  /** Tells programs of the largest path MTU, in bytes, and if `gids` that the table of GIDs has changed. Returns whether there are any. */
  /** A path of its own for a program; its descriptors end with closeProgram(). */
  lendPath(nic: number, number: number): LentPath;
  tellPrograms(nic: number, gids: boolean, pathMtu: number): boolean;
  /** Returns the number of a new queue pair. Throws NO_RESOURCES. */
  createQueuePair(nic: number, options: NativeQueuePairOptions): number;
  /** Returns false when there is none of this number. */
  destroyQueuePair(nic: number, qpn: number): boolean;
  /** Throws INVALID_STATE for an illegal transition, INVALID_QPN. */
  modifyQueuePair(nic: number, qpn: number, attributes: NativeQueueAttributes): void;
  /** Throws NO_RESOURCES. */
  createAddressHandle(nic: number, path: NativePath): number;
  /** Destroys a handle: work that was posted to it and is not sent yet fails. False when there is no such handle. */
  destroyAddressHandle(nic: number, handle: number): boolean;
  /** Datagrams to a multicast group are for this queue pair, too. Throws INVALID_QPN, NO_RESOURCES. */
  attachGroup(nic: number, qpn: number, group: NativeIpAddress): boolean;
  /** Returns false when the queue pair has not joined the group. */
  detachGroup(nic: number, qpn: number, group: NativeIpAddress): boolean;
  /**
   * The MAC address behind an address of the NIC's link; 0: nobody answers; undefined: the worker was closed meanwhile. `own`: the place of
   * the NIC's address from which it asks. Throws NO_RESOURCES, INVALID_ADDRESS.
   */
  resolve(nic: number, own: number, address: NativeIpAddress): Promise<number | undefined>;
  /** Hands over `count` work requests (kWorkCommand); returns how many were taken. */
  post(nic: number, words: BigUint64Array, count: number): number;
  /** Fills `words` with completions (kCompletionRun); returns how many records that are. */
  drainCompletions(nic: number, words: BigUint64Array): number;
  /**
   * Takes a turn of the loop in this thread, unless the worker's own is at it, which leaves turns to such a helper from then on; then does
   * what drainCompletions() does. Without completions returns 0 if frames have come or gone, else -1.
   */
  progress(nic: number, words: BigUint64Array): number;
  /** The helper polls no more. */
  rest(): void;
  /** Captures frames of these ports, too; only after open(). A capture has one worker, and is attached once. Throws NO_PORT. */
  attach(capture: NativeCapture, places: CapturePlace[]): void;
  /** Ends a capture; frames that it has taken wait to be drained. */
  detach(capture: NativeCapture): void;
  /**
   * Makes a fault at a port, whose `tap` means nothing, from now on; returns its number, from 1. Throws NO_PORT, INVALID_CONFIG,
   * NO_RESOURCES.
   */
  addFault(place: CapturePlace, fault: NativeFault): number;
  /** Returns false when there is none of this number that goes on. */
  endFault(number: number): boolean;
  /** Faults of all ports; those that are over, too, as long as their port has not had many. */
  faults(): FaultState[];
  /** Longest gap between two turns of the loop so far, ns. */
  worstGap(): number;
  /** Longest gap of the last 10 to 20 s, as of the last turn. */
  recentGap(): number;
  /** Operations of its message graph that have ended. */
  operationsEnded(): number;
  /** Their times, CLOCK_MONOTONIC ns. */
  operations(): OperationTimes;
  /** Stops the worker first. */
  outcome(): WorkerOutcome;
}

/** The part of a worker that applications with a NIC need. */
export type VerbsWorker = Pick<
  NativeWorker,
  | "registerMemory"
  | "deregisterMemory"
  | "createQueuePair"
  | "destroyQueuePair"
  | "modifyQueuePair"
  | "destroyAddressHandle"
  | "post"
  | "drainCompletions"
  | "progress"
  | "rest"
>;

/** A NIC that a daemon has, as an application of this process uses it. Methods that ask the daemon wait for its answer. */
export interface NativeDaemonNic {
  /** The daemon's description of the NIC. */
  hello(): ProgramAnswer;
  /** The daemon is gone; all completions that this led to are there. */
  over(): boolean;
  /** Returns the key, local and remote; 0: no place is left. */
  registerMemory(memory: NativeMemory, access: number, domain: number): number;
  /** Returns false when there is no such key. */
  deregisterMemory(key: number): boolean;
  /** Throws NO_RESOURCES, NO_DAEMON. */
  createQueuePair(options: NativeQueuePairOptions): number;
  /** Throws INVALID_STATE, INVALID_ATTRIBUTE, UNREACHABLE, REFUSED, NO_DAEMON. */
  modifyQueuePair(qpn: number, change: ProgramChange): void;
  destroyQueuePair(qpn: number): boolean;
  /** Rejects with UNREACHABLE, NO_RESOURCES, REFUSED, NO_DAEMON. */
  createAddressHandle(way: ProgramWay): Promise<ProgramAnswer>;
  destroyAddressHandle(handle: number): void;
  post(words: BigUint64Array, count: number): number;
  drainCompletions(words: BigUint64Array): number;
  /** Moves its transports along in this thread; returns what NativeWorker.progress() does. */
  progress(words: BigUint64Array): number;
  /** The helper polls no more. */
  rest(): void;
  /** Counters of its transports, by name. */
  counters(): Record<string, number>;
  /** Waits until sent data has left, queue pairs are destroyed, and the daemon hears that the program ends. Idempotent. */
  close(): void;
}

/** The kind of an interface and what it can do, as the kernel tells; what neither it nor the driver tells is left out. */
export interface InterfaceProbe {
  /** Kind by `ip -details link`: veth, tun, bridge ...; "": hardware, real or a virtual machine's, or loopback. */
  kind: string;
  /** "": the driver is unknown; so with `bus`, its address there. */
  driver: string;
  bus: string;
  /** Bridge or bond that it is a member of, and of what kind that is; "": none. */
  master: string;
  master_kind: string;
  loopback: boolean;
  /** `up` is administrative; `running`: with a carrier. */
  up: boolean;
  running: boolean;
  mtu: number;
  mac: number;
  /** The host has IP addresses there, beyond IPv6's link-local ones. */
  addressed: boolean;
  /** Speed in bit/s. */
  speed?: number;
  receive_queues?: number;
  transmit_queues?: number;
  /** Lengths of rings, in descriptors. */
  receive_ring?: number;
  transmit_ring?: number;
  /** Offloads by the names that ethtool -K takes. */
  offloads: { [Name in "tso" | "gso" | "gro" | "lro" | "tx" | "rx" | "txvlan" | "rxvlan"]?: boolean };
  /** Flow control of the MAC, by the names of ethtool -A. */
  pause: { autoneg?: boolean; rx?: boolean; tx?: boolean };
  xdp_attached: "none" | "native" | "generic" | "hardware" | "several";
  /** Names of the kernel's netdev.yaml: basic, redirect, ndo-xmit, xsk-zerocopy, hw-offload, rx-sg, ndo-xmit-sg. From Linux 6.3. */
  xdp_features?: string[];
  /** Features by name: timestamp, hash, vlan-tag. */
  xdp_metadata?: string[];
  /** Why this process gets no AF_XDP socket there, or may not load XDP programs: "EPERM", ...; "": it may. */
  xdp_sockets: string;
  xdp_programs: string;
  /** The same for live frames; tried on loopback, and where there is somebody to take them (`peer_xdp`). */
  live_frames?: string;
  /** The other end of this veth runs an XDP program in its driver. */
  peer_xdp: boolean;
}

/** State that the workers of one switch share. */
export type NativeSharedSwitch = object;

/** Calls that asking the kernel about interfaces takes: see interface_probe.ts. */
export interface KernelSockets {
  /**
   * Opens a socket like socket(2), in the network namespace at a path, this process's own if left out; to be closed with fs.closeSync().
   * Throws why there is none, or why the namespace cannot be entered.
   */
  openSocket(domain: number, type: number, protocol: number, namespacePath?: string): number;
  /** The descriptor of a socket that hears of the kernel's routes and neighbours, in a namespace as openSocket(); to be closed. */
  openRouteWatch(namespacePath?: string): number;
  /** The descriptor of such a socket for addresses and routes. */
  openAddressWatch(namespacePath?: string): number;
  /** Whether any have changed since the last call, or may have: a mask of 1 for routes or links, 2 for neighbours. Does not wait. */
  takeRouteNews(socket: number): number;
  /** Asks ethtool of an interface of the socket's namespace: `data` starts with the command and gets the answer; at most 4 KiB. */
  ethtool(socket: number, name: string, data: Uint8Array): boolean;
  /** Throws why this process may not load XDP programs. */
  tryXdpProgram(): void;
  /** Throws why this process may not send live frames. */
  tryLiveFrames(): void;
  /** Whether the other end of a veth in the socket's namespace runs an XDP program in its driver. */
  peerRunsXdp(socket: number, name: string): boolean;
}

/** A few frames of our own on an interface: see lab/meeting_sockets.ts. */
export interface LinkSockets {
  /**
   * The descriptor of a packet socket for the frames of one EtherType on an interface of this process's own namespace: fs.writeSync()
   * sends a whole frame; nothing waits. Throws ENODEV, EPERM.
   */
  openLinkSocket(interfaceName: string, ethertype: number): number;
  /** Reads a frame into `data`, its length and time of arrival (monotonicNow()) into `words`; false when none waits. */
  readLink(socket: number, data: Uint8Array, words: Float64Array): boolean;
}

/** Calls by which the kernel's routes are followed. */
export type RouteSockets = Pick<KernelSockets, "openSocket" | "openRouteWatch" | "takeRouteNews">;

/** Calls by which the addresses of an interface are followed. */
export type AddressSockets = Pick<KernelSockets, "openAddressWatch" | "takeRouteNews">;

export interface NativeAddon extends RouteSockets, AddressSockets {
  /** `config` is that of any of the workers; `owner`: the worker of each port. */
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
  /** @param socket The daemon serves programs there. `onDoorbell` is called when completions have come, and when the daemon is gone. */
  DaemonNic: new (
    socket: string,
    onDoorbell: () => void,
  ) => NativeDaemonNic;
  Capture: new (config: CaptureConfig) => NativeCapture;
  /** Zeroed memory of `bytes` > 0. */
  Memory: new (
    bytes: number,
  ) => NativeMemory;
  /**
   * The descriptor, to be closed with fs.closeSync(), of a UDP socket of the kernel that drops all that comes to the port.
   * Throws EADDRINUSE, EADDRNOTAVAIL.
   */
  holdUdpPort(address: string, port: number, namespacePath?: string): number;
  /**
   * The descriptor of a socket of TCP, bound to an IPv4 address and a free port of a network namespace: to connect, or to listen at.
   * `pacing`: the most that it sends, bit/s; 0: unlimited. Throws ENOENT where the kernel lacks the congestion control.
   */
  openTcpSocket(address: string, control: string, dscp: number, pacing: number, namespacePath: string): number;
  /** Fills five words (native/io/tcp_socket.h) with what the kernel says of a connection; false where there is none. */
  tcpInfo(socket: number, words: Float64Array): boolean;
  /** Asks the kernel (interface_probe.ts); changes nothing. Throws ENODEV, or why `namespacePath` cannot be entered. */
  probeInterface(name: string, namespacePath?: string): InterfaceProbe;
  /**
   * All threads of this process keep no more than these capabilities (numbers of linux/capability.h) of those that they have, and
   * get none by executing a program: no_new_privs. For good. Throws if a thread cannot be limited.
   */
  limitCapabilities(keep: readonly number[]): void;
  /** sd_notify(3): sends `state` ("READY=1") to the datagram socket at `path`; false if that fails. */
  notify(path: string, state: string): boolean;
  /** Credentials of the process that has connected to a unix socket. */
  peerCredentials(socket: number): PeerCredentials;
  /** A descriptor here for what is descriptor `number` of a process that this one may trace: pidfd_getfd(2). Throws if it may not. */
  takeDescriptor(pid: number, number: number): number;
  /** Length of a program's request, bytes. */
  programRequestBytes(): number;
  /** Most programs that may use a NIC at a time. */
  mostPrograms(): number;
  /** Parses a request of programRequestBytes() bytes. */
  readProgramRequest(bytes: Uint8Array): ProgramRequest;
  /** Sends an answer, and descriptors along; false if it could not be sent whole. */
  answerProgram(socket: number, answer: ProgramAnswer, descriptors: readonly number[]): boolean;
  /** Time of CLOCK_MONOTONIC, ns. */
  monotonicNow(): number;
}
