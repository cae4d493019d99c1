/** One program of a NIC, from its first word to its end: its requests (native/endpoint/program_protocol.h), each in its turn. */
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { constants } from "node:os";
import { WeirError } from "../../base/error.js";
import type { Device } from "../../device/device.js";
import type { NicDaemonConfig } from "../../device/file/load.js";
import type { ProgramIdentity } from "../../device/protocol.js";
import { nativeAddress } from "../../native/ip_address.js";
import type { NativeAddon, NativePath, ProgramAnswer, ProgramOpening, ProgramRequest } from "../../native/types.js";
import type { ProgramWorker } from "../../native/workers.js";
import { addressOfGid, isGroup } from "../../wire/address.js";
import type { GroupReports } from "../../wire/cm/group_reports.js";
import type { FrameLink } from "../../wire/cm/link.js";
import { kPathMtus } from "../../wire/cm/messages.js";
import { kGids } from "./gid_table.js";
import { RequestBudget } from "./request_budget.js";
import type { Shares } from "./shares.js";

const { ENOMEM, EINVAL, EHOSTUNREACH, EPROTO, ENOENT, EIO } = constants.errno;
/** Requests of one program that may wait: it can send more when they are answered. */
const kMostPending = 64;

/** Hears of the beginning and the end of each program. */
export interface ProgramEvents {
  began(program: ProgramIdentity & { gid: number }): void;
  ended(program: ProgramIdentity): void;
}

/** The part of a NIC's configuration that concerns programs; a daemon's is that of its file. */
export type ProgramNicConfig = Pick<NicDaemonConfig, "name" | "address" | "addresses" | "vlan" | "programs"> & {
  gateways?: NicDaemonConfig["gateways"];
  /** Queue pairs of the daemon itself. */
  queue_pairs?: readonly Pick<NicDaemonConfig["queue_pairs"][number], "qpn">[];
  classes: Pick<NicDaemonConfig["classes"], "dscp_map">;
  congestion: Pick<NicDaemonConfig["congestion"], "algorithm">;
  port: Pick<NicDaemonConfig["port"], "interface" | "mac" | "rate" | "mtu">;
};

/** The part of the NIC that programs use. */
export interface ProgramHost {
  addon: Pick<
    NativeAddon,
    "peerCredentials" | "programRequestBytes" | "mostPrograms" | "readProgramRequest" | "answerProgram"
  >;
  worker: ProgramWorker;
  /** Link for frames that are not for queue pairs. */
  link: FrameLink;
  /** Whether it lends programs paths of their own now. */
  lends?: () => boolean;
  /** Number of queue pairs for which the worker has places. */
  queuePairs: number;
  /** The NIC as a device. */
  device: Pick<Device, "name" | "ports" | "counted">;
  events?: ProgramEvents;
}

/** The NIC whose programs have sessions. */
export interface SessionHost {
  readonly host: ProgramHost;
  readonly config: ProgramNicConfig;
  readonly groups: Pick<GroupReports, "join">;
  /** Shares of users in what the NIC has only so many of. */
  readonly shares: Readonly<Record<"programs" | "queuePairs" | "memberships", Shares>>;
  /** bytes */
  readonly largestPathMtu: number;
  wayTo(request: ProgramRequest, order: number): Promise<{ path: NativePath; priority: number }>;
  nowhere(priority: number): NativePath;
}

export class ProgramSession {
  /** Number of the program at the worker; 0: it has not said hello. */
  number = 0;
  identity: ProgramIdentity = { pid: 0, uid: 0, command: "" };
  #pending = Buffer.alloc(0);
  #working = false;
  #closed = false;
  readonly #size: number;
  readonly #budget = new RequestBudget();
  readonly #queuePairs = new Map<number, { datagram: boolean }>();
  readonly #handles = new Set<number>();
  /** Functions that end memberships in multicast groups, by queue pair and group. */
  readonly #groups = new Map<string, () => void>();
  readonly #descriptor: number;
  /** Block of queue pair numbers of the path that it has to itself; -1: it has none. */
  #block = -1;
  /** Limits of the program at the NIC, once it has said hello. */
  #most: Pick<ProgramOpening, "address_handles" | "memberships"> = { address_handles: 0, memberships: 0 };

  constructor(
    private readonly broker: SessionHost,
    private readonly socket: Socket,
    /** Runs until it has said hello. */
    private readonly patience: NodeJS.Timeout,
  ) {
    this.#size = broker.host.addon.programRequestBytes();
    this.#descriptor = descriptorOf(socket);
    socket.on("data", (bytes: Buffer) => this.receive(bytes));
  }

  receive(bytes: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, bytes]);
    if (this.#pending.length > kMostPending * this.#size) this.socket.pause();
    void this.#work();
  }

  /** Whether it has a path of its own. */
  get direct(): boolean {
    return this.#block >= 0;
  }

  readonly has = (qpn: number) => this.#queuePairs.has(qpn);

  /** Ends its queue pairs. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    const { worker, events } = this.broker.host;
    const { shares } = this.broker;
    const { uid } = this.identity;
    if (this.number !== 0) {
      worker.closeProgram(0, this.number);
      shares.programs.give(uid);
      for (const _ of this.#queuePairs) shares.queuePairs.give(uid);
      events?.ended(this.identity);
    }
    for (const handle of this.#handles) worker.destroyAddressHandle(0, handle);
    for (const leave of this.#groups.values()) leave();
    this.socket.destroy();
  }

  /** Answers requests in their order, each before the next. */
  async #work(): Promise<void> {
    if (this.#working) return;
    this.#working = true;
    const { addon } = this.broker.host;
    const size = this.#size;
    while (this.#pending.length >= size && !this.#closed) {
      await this.#budget.next();
      if (this.#closed) break;
      const request = addon.readProgramRequest(this.#pending.subarray(0, size));
      this.#pending = this.#pending.subarray(size);
      if (this.#pending.length < size) this.socket.resume();
      const answer = await this.#answer(request, size).catch((error) => ({ error: errnoOf(error) }));
      if (this.#closed) break;
      const { descriptors = [], ...told } = answer as ProgramAnswer & { descriptors?: number[] };
      if (!addon.answerProgram(this.#descriptor, told, descriptors)) this.close();
    }
    this.#working = false;
  }

  async #answer(request: ProgramRequest, size: number): Promise<ProgramAnswer & { descriptors?: number[] }> {
    const { worker } = this.broker.host;
    if (request.bytes !== size) return { error: EPROTO };
    if (request.kind === "hello") return this.#hello(request.direct === 1);
    if (this.number === 0) return { error: EPROTO };
    const held = this.#queuePairs.get(request.object);
    switch (request.kind) {
      case "create-queue-pair": {
        const datagram = request.datagram === 1;
        const unreliable = request.unreliable === 1;
        const program = this.number;
        const { queuePairs } = this.broker.shares;
        if (!queuePairs.take(this.identity.uid)) return { error: ENOMEM };
        try {
          const qpn = worker.createQueuePair(0, { datagram, unreliable, send_depth: 1, receive_depth: 1, program });
          this.#queuePairs.set(qpn, { datagram });
          return { object: qpn };
        } catch (error) {
          queuePairs.give(this.identity.uid);
          throw error;
        }
      }
      case "modify-queue-pair":
        return held === undefined ? { error: ENOENT } : this.#modify(request, held);
      case "destroy-queue-pair":
        if (held === undefined) return { error: ENOENT };
        this.#queuePairs.delete(request.object);
        for (const key of this.#groups.keys()) if (key.startsWith(`${request.object} `)) this.#leave(key);
        worker.destroyQueuePair(0, request.object);
        this.broker.shares.queuePairs.give(this.identity.uid);
        return {};
      case "create-address-handle": {
        if (this.#handles.size >= this.#most.address_handles) return { error: ENOMEM };
        const { path } = await this.broker.wayTo(request, this.number);
        if (this.#closed) return { error: EIO };
        const handle = worker.createAddressHandle(0, path);
        this.#handles.add(handle);
        return { object: handle, mac: path.destination_mac };
      }
      case "destroy-address-handle":
        if (!this.#handles.delete(request.object)) return { error: ENOENT };
        worker.destroyAddressHandle(0, request.object);
        return {};
      case "attach-group":
      case "detach-group": {
        const group = addressOfGid(Uint8Array.from(request.gid));
        if (held?.datagram !== true || !isGroup(group)) return { error: held === undefined ? ENOENT : EINVAL };
        const key = `${request.object} ${group}`;
        return request.kind === "attach-group" ? this.#join(request.object, group, key) : this.#leave(key);
      }
      default:
        return { error: EPROTO };
    }
  }

  #join(qpn: number, group: string, key: string): ProgramAnswer {
    const { groups, host, shares } = this.broker;
    const { uid } = this.identity;
    if (this.#groups.has(key)) return {};
    if (this.#groups.size >= this.#most.memberships || !shares.memberships.take(uid)) return { error: ENOMEM };
    const reported = groups.join(group);
    const leave = () => {
      reported?.();
      shares.memberships.give(uid);
    };
    try {
      if (reported === undefined) return { error: ENOMEM };
      host.worker.attachGroup(0, qpn, nativeAddress(group));
      this.#groups.set(key, () => {
        host.worker.detachGroup(0, qpn, nativeAddress(group));
        leave();
      });
      return {};
    } finally {
      if (!this.#groups.has(key)) leave();
    }
  }

  #leave(key: string): ProgramAnswer {
    const leave = this.#groups.get(key);
    if (leave === undefined) return { error: EINVAL };
    this.#groups.delete(key);
    leave();
    return {};
  }

  #hello(direct: boolean): ProgramAnswer & { descriptors?: number[] } {
    const { host, config, largestPathMtu } = this.broker;
    if (this.number !== 0) return { error: EPROTO };
    const { pid, uid, gid } = host.addon.peerCredentials(this.#descriptor);
    const { programs } = this.broker.shares;
    if (!programs.take(uid)) return { error: ENOMEM };
    let opening: ProgramOpening;
    try {
      opening = host.worker.openProgram(0);
    } catch (error) {
      programs.give(uid);
      throw error;
    }
    const { number, memory, wake, ...most } = opening;
    this.#most = most;
    clearTimeout(this.patience);
    this.number = number;
    this.identity = { pid, uid, command: commandOf(pid) };
    host.events?.began({ ...this.identity, gid });
    const { mac, rate } = config.port;
    const path =
      direct && config.programs?.direct === true && host.lends?.() !== false
        ? host.worker.lendPath(0, number)
        : undefined;
    this.#block = path?.block ?? -1;
    const lent = path === undefined || path.block < 0 ? [] : [path.config, path.socket];
    return { mac, rate, path_mtu: largestPathMtu, gids: kGids, descriptors: [memory, wake, ...lent] };
  }

  async #modify(request: ProgramRequest, { datagram }: { datagram: boolean }): Promise<ProgramAnswer> {
    const { broker } = this;
    const { state, path_mtu: mtu } = request;
    if (state === undefined || !(kPathMtus as readonly number[]).includes(mtu)) return { error: EINVAL };
    if (request.remote_qpn > 0xff_ffff || request.partition_key > 0xffff) return { error: EINVAL };
    const connects = state === "rtr" && !datagram;
    if (connects && mtu > broker.largestPathMtu) return { error: EINVAL };
    if (connects && isGroup(addressOfGid(Uint8Array.from(request.gid)))) return { error: EINVAL };
    const priority = broker.config.programs?.priority ?? 0;
    const way = connects ? await broker.wayTo(request, request.object) : { path: broker.nowhere(priority), priority };
    // It may have ended while its peer was looked for.
    if (!this.#queuePairs.has(request.object) || this.#closed) return { error: ENOENT };
    broker.host.worker.modifyQueuePair(0, request.object, {
      state,
      path_mtu: mtu,
      remote_qpn: request.remote_qpn,
      partition_key: request.partition_key,
      receive_psn: request.receive_psn & 0xff_ffff,
      // Attributes that concern the transport alone are the program's own.
      timeout: 0,
      retry_count: 0,
      recovery: "go-back-n",
      window: 0,
      rate_cap: 0,
      ...way,
    });
    // Its own path leads to others on the wire alone.
    const direct =
      connects && blockOf(request.object) === this.#block && way.path.destination_mac !== broker.config.port.mac;
    return direct ? { direct: 1, ...way } : {};
  }
}

/** The block of a queue pair number (native/wire/bth.h). */
const blockOf = (qpn: number) => (qpn >> 8) & 15;

/** Returns an empty text if the process cannot be seen from here. */
function commandOf(pid: number): string {
  try {
    return pid === 0 ? "" : readFileSync(`/proc/${pid}/comm`, "utf8").trimEnd();
  } catch {
    return "";
  }
}

/** Returns the descriptor of a socket: Node.js has no other way to send descriptors along, or to ask for the peer's identity. */
export function descriptorOf(socket: Socket): number {
  return (socket as unknown as { _handle: { fd: number } })._handle.fd;
}

function errnoOf(error: unknown): number {
  const { code = "" } = error as { code?: string };
  // The error may be the system's: it has no descriptors left, or no memory.
  if (code in constants.errno) return constants.errno[code as keyof typeof constants.errno];
  if (code === "NO_RESOURCES") return ENOMEM;
  if (code.startsWith("INVALID")) return EINVAL;
  if (error instanceof RangeError) return EINVAL;
  return error instanceof WeirError ? EHOSTUNREACH : EIO;
}
