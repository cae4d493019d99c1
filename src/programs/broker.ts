/**
 * Serves the programs that use a NIC: who they are, their queue pairs, where their peers are. What a program asks is in
 * native/endpoint/program_protocol.h; its transport runs in its own process.
 */
import { readFileSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { constants } from "node:os";
import { dirname } from "node:path";
import { WeirError } from "../base/error.js";
import { makeFolder } from "../base/folder.js";
import { GroupReports } from "../cm/group_reports.js";
import type { FrameLink } from "../cm/link.js";
import { kPathMtus } from "../cm/messages.js";
import { Neighbours } from "../cm/neighbour.js";
import { hearsTelemetry } from "../congestion/flow_state.js";
import { senderOf } from "../device/compose.js";
import { probe } from "../device/control_client.js";
import type { NicDaemonConfig } from "../device/file/load.js";
import { pathTo, routeFrom } from "../device/path.js";
import type { ProgramIdentity } from "../device/protocol.js";
import type { NativeAddon, NativePath, ProgramAnswer, ProgramOpening, ProgramRequest } from "../native/types.js";
import type { ProgramWorker } from "../native/workers.js";
import { dscpOf } from "../scenario/resolve.js";
import { addressBytes, addressOfGid, isGroup } from "../wire/address.js";
import { kTelemetryBytes, largestPathMtu } from "../wire/frame_size.js";
import { isHello, ProgramConnections } from "./connections.js";
import { kFilesSuffix, writeDeviceFiles } from "./device_files.js";
import { RequestBudget } from "./request_budget.js";
import { openToGroup } from "./socket_access.js";

const { ENOMEM, EINVAL, EHOSTUNREACH, EPROTO, ENOENT, EIO } = constants.errno;
const kStates = ["reset", "init", "rtr", "rts", "error"] as const;
const kOwnerOnly = 0o177;
const kMostPriority = 7;
/** Each channel of librdmacm is one; the native core has 256 programs at most. */
const kMostConnections = 8192;
const kHelloMs = 5000;
/** Requests of one program that wait: it may ask on when they are answered. */
const kMostPending = 64;
/** Requests of ProgramRequest::Kind. */
const kKind = {
  hello: 0,
  createQueuePair: 1,
  modifyQueuePair: 2,
  destroyQueuePair: 3,
  createHandle: 4,
  destroyHandle: 5,
  attachGroup: 6,
  detachGroup: 7,
};

/** Told of each program. */
export interface ProgramEvents {
  began(program: ProgramIdentity & { gid: number }): void;
  ended(program: ProgramIdentity): void;
}

/** What of a NIC's configuration programs have to do with; a daemon's is its file's. */
export type ProgramNicConfig = Pick<NicDaemonConfig, "name" | "address" | "addresses" | "vlan" | "programs"> & {
  gateways?: NicDaemonConfig["gateways"];
  classes: Pick<NicDaemonConfig["classes"], "dscp_map">;
  congestion: Pick<NicDaemonConfig["congestion"], "algorithm">;
  port: Pick<NicDaemonConfig["port"], "interface" | "mac" | "rate" | "mtu">;
};

/** The NIC as far as programs are concerned. */
export interface ProgramHost {
  addon: Pick<NativeAddon, "peerCredentials" | "programRequestBytes" | "readProgramRequest" | "answerProgram">;
  worker: ProgramWorker;
  /** Where frames that are not for queue pairs come and go. */
  link: FrameLink;
  events?: ProgramEvents;
}

export class ProgramBroker {
  readonly #connections = new Set<Connection>();
  readonly #sockets = new Set<Socket>();
  /** Of each address, in their order. */
  readonly #neighbours: readonly Neighbours[];
  /** Of programs that use librdmacm. */
  readonly #cm: ProgramConnections;
  readonly groups: GroupReports;
  readonly #files: string;
  readonly #onExit = () => this.#removeFiles();

  private constructor(
    readonly host: ProgramHost,
    readonly config: ProgramNicConfig,
    private readonly server: Server,
    readonly path: string,
  ) {
    // Who asks for the NIC's address is answered elsewhere.
    const { link } = host;
    this.#neighbours = config.addresses.map(
      (address) => new Neighbours({ link, address, answers: false, route: routeFrom(config.gateways ?? [], address) }),
    );
    this.groups = new GroupReports({ link, addresses: config.addresses });
    this.#cm = new ProgramConnections({
      groups: this.groups,
      addresses: config.addresses.map((address, i) => ({ address, neighbours: this.#neighbours[i] as Neighbours })),
      pathMtu: this.largestPathMtu,
      link,
      credentials: (socket) => host.addon.peerCredentials(descriptorOf(socket)),
      ownsQueuePair: (uid, qpn) =>
        [...this.#connections].some(({ number, identity, has }) => number !== 0 && identity.uid === uid && has(qpn)),
    });
    this.#files = path.replace(/\.verbs$/, "") + kFilesSuffix;
  }

  /** Listens at `path`, which only its owner may open. @throws WeirError when another daemon does, or the socket cannot be made. */
  static async open(path: string, config: ProgramNicConfig, host: ProgramHost): Promise<ProgramBroker> {
    makeFolder(dirname(path), 0o755);
    if (await probe(path)) throw new WeirError(`another daemon serves programs at ${path}`, { hint: "stop it first" });
    rmSync(path, { force: true });
    const server = createServer();
    server.maxConnections = kMostConnections;
    const broker = new ProgramBroker(host, config, server, path);
    server.on("connection", (socket) => broker.#serve(socket));
    const umask = process.umask(kOwnerOnly);
    try {
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject).listen(path, resolve);
      });
      const group = config.programs?.group;
      if (group !== undefined) openToGroup(path, group);
    } catch (error) {
      broker.close();
      if (error instanceof WeirError) throw error;
      throw new WeirError(`socket for programs ${path}: ${(error as NodeJS.ErrnoException).code}`, {
        cause: error,
        hint: "run as root, or set `control` to a path that you may write",
      });
    } finally {
      process.umask(umask);
    }
    // A connection that could not be accepted (no descriptors left) is the program's to repeat.
    server.on("error", () => {});
    const { port, name, addresses } = config;
    // What a daemon that was killed has left may be of another NIC.
    rmSync(broker.#files, { recursive: true, force: true });
    writeDeviceFiles(broker.#files, {
      name,
      addresses,
      interface: port.interface,
      mac: port.mac,
      rate: port.rate,
      socket: path,
    });
    process.on("exit", broker.#onExit);
    return broker;
  }

  /** Those that are connected and have said hello, by their numbers. */
  programs(): Map<number, ProgramIdentity> {
    const all = [...this.#connections].filter(({ number }) => number !== 0);
    return new Map(all.map(({ number, identity }) => [number, identity]));
  }

  /** Programs hear that the NIC is gone. Idempotent. */
  close(): void {
    process.off("exit", this.#onExit);
    this.#removeFiles();
    this.server.close();
    this.#cm.close();
    for (const connection of this.#connections) connection.close();
    for (const socket of this.#sockets) socket.destroy();
    for (const neighbours of this.#neighbours) neighbours.close();
    this.groups.close();
  }

  /** bytes; with room for what switches write, where the NIC's congestion control goes by that */
  get largestPathMtu(): number {
    const { port, congestion } = this.config;
    return largestPathMtu(port.mtu, hearsTelemetry(congestion.algorithm) ? kTelemetryBytes : 0) ?? 256;
  }

  /** The way to a peer, with its priority. @throws RangeError for a GID that is not ours, WeirError when nobody answers there. */
  async wayTo(request: ProgramRequest, order: number): Promise<{ path: NativePath; priority: number }> {
    const { config } = this;
    const neighbours = this.#neighbours[request.source_index];
    if (neighbours === undefined) throw new RangeError("there is no such GID");
    // No GID: the NIC itself.
    const address = request.gid.some((byte) => byte !== 0)
      ? addressOfGid(Uint8Array.from(request.gid))
      : (config.addresses[request.source_index] ?? config.address);
    const { traffic_class, service_level, hop_limit } = request;
    if (traffic_class > 0xff || service_level > kMostPriority || hop_limit > 0xff) throw new RangeError("no such way");
    const meant = service_level || (config.programs?.priority ?? 0);
    const dscp = traffic_class >> 2 || dscpOf(config.classes.dscp_map, meant);
    const priority = config.classes.dscp_map[dscp] ?? 0;
    const mac = await neighbours.resolve(address);
    const path = pathTo(senderOf(config), { address, mac }, dscp, priority, order);
    return { path: { ...path, ...(hop_limit > 0 && { ttl: hop_limit }) }, priority };
  }

  /** The path of a queue pair that has no peer yet. */
  nowhere(priority: number): NativePath {
    return pathTo(senderOf(this.config), undefined, 0, priority, 0);
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => {}).on("close", () => void this.#sockets.delete(socket));
    socket.setTimeout(kHelloMs, () => socket.destroy());
    socket.once("data", (first: Buffer) => {
      socket.setTimeout(0);
      if (isHello(first)) return this.#cm.serve(socket, first);
      const connection = new Connection(this, socket);
      this.#connections.add(connection);
      socket.on("close", () => {
        this.#connections.delete(connection);
        connection.close();
      });
      connection.receive(first);
    });
  }

  #removeFiles(): void {
    rmSync(this.#files, { recursive: true, force: true });
    rmSync(this.path, { force: true });
  }
}

/** One program, from its first word to its end. */
class Connection {
  /** At the worker; 0: it has not said hello. */
  number = 0;
  identity: ProgramIdentity = { pid: 0, uid: 0, command: "" };
  #pending = Buffer.alloc(0);
  #working = false;
  #closed = false;
  readonly #size: number;
  readonly #budget = new RequestBudget();
  readonly #patience: NodeJS.Timeout;
  readonly #queuePairs = new Map<number, { datagram: boolean }>();
  readonly #handles = new Set<number>();
  /** Memberships in multicast groups, by queue pair and group: what ends each. */
  readonly #groups = new Map<string, () => void>();
  readonly #descriptor: number;
  /** What it may have of the NIC, once it has said hello. */
  #most: Pick<ProgramOpening, "address_handles" | "memberships"> = { address_handles: 0, memberships: 0 };

  constructor(
    private readonly broker: ProgramBroker,
    private readonly socket: Socket,
  ) {
    this.#size = broker.host.addon.programRequestBytes();
    this.#descriptor = descriptorOf(socket);
    socket.on("data", (bytes: Buffer) => this.receive(bytes));
    this.#patience = setTimeout(() => this.close(), kHelloMs).unref();
  }

  receive(bytes: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, bytes]);
    if (this.#pending.length > kMostPending * this.#size) this.socket.pause();
    void this.#work();
  }

  readonly has = (qpn: number) => this.#queuePairs.has(qpn);

  /** Its queue pairs end. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#patience);
    const { worker, events } = this.broker.host;
    if (this.number !== 0) {
      worker.closeProgram(0, this.number);
      events?.ended(this.identity);
    }
    for (const handle of this.#handles) worker.destroyAddressHandle(0, handle);
    for (const leave of this.#groups.values()) leave();
    this.socket.destroy();
  }

  /** Requests in their order, each answered before the next. */
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
    if (request.kind === kKind.hello) return this.#hello();
    if (this.number === 0) return { error: EPROTO };
    const held = this.#queuePairs.get(request.object);
    switch (request.kind) {
      case kKind.createQueuePair: {
        const datagram = request.datagram === 1;
        const unreliable = request.unreliable === 1;
        const program = this.number;
        const qpn = worker.createQueuePair(0, { datagram, unreliable, send_depth: 1, receive_depth: 1, program });
        this.#queuePairs.set(qpn, { datagram });
        return { object: qpn };
      }
      case kKind.modifyQueuePair:
        return held === undefined ? { error: ENOENT } : this.#modify(request, held);
      case kKind.destroyQueuePair:
        if (held === undefined) return { error: ENOENT };
        this.#queuePairs.delete(request.object);
        for (const key of this.#groups.keys()) if (key.startsWith(`${request.object} `)) this.#leave(key);
        worker.destroyQueuePair(0, request.object);
        return {};
      case kKind.createHandle: {
        if (this.#handles.size >= this.#most.address_handles) return { error: ENOMEM };
        const { path } = await this.broker.wayTo(request, this.number);
        if (this.#closed) return { error: EIO };
        const handle = worker.createAddressHandle(0, path);
        this.#handles.add(handle);
        return { object: handle, mac: path.destination_mac };
      }
      case kKind.destroyHandle:
        if (!this.#handles.delete(request.object)) return { error: ENOENT };
        worker.destroyAddressHandle(0, request.object);
        return {};
      case kKind.attachGroup:
      case kKind.detachGroup: {
        const group = addressOfGid(Uint8Array.from(request.gid));
        if (held?.datagram !== true || !isGroup(group)) return { error: held === undefined ? ENOENT : EINVAL };
        const key = `${request.object} ${group}`;
        return request.kind === kKind.attachGroup ? this.#join(request.object, group, key) : this.#leave(key);
      }
      default:
        return { error: EPROTO };
    }
  }

  #join(qpn: number, group: string, key: string): ProgramAnswer {
    const { groups, host } = this.broker;
    if (this.#groups.has(key)) return {};
    const leave = this.#groups.size < this.#most.memberships ? groups.join(group) : undefined;
    if (leave === undefined) return { error: ENOMEM };
    try {
      host.worker.attachGroup(0, qpn, nativeAddress(group));
    } catch (error) {
      leave();
      throw error;
    }
    this.#groups.set(key, () => {
      host.worker.detachGroup(0, qpn, nativeAddress(group));
      leave();
    });
    return {};
  }

  #leave(key: string): ProgramAnswer {
    const leave = this.#groups.get(key);
    if (leave === undefined) return { error: EINVAL };
    this.#groups.delete(key);
    leave();
    return {};
  }

  #hello(): ProgramAnswer & { descriptors?: number[] } {
    const { host, config, largestPathMtu } = this.broker;
    if (this.number !== 0) return { error: EPROTO };
    const { pid, uid, gid } = host.addon.peerCredentials(this.#descriptor);
    const { number, memory, wake, ...most } = host.worker.openProgram(0);
    this.#most = most;
    clearTimeout(this.#patience);
    this.number = number;
    this.identity = { pid, uid, command: commandOf(pid) };
    host.events?.began({ ...this.identity, gid });
    const { mac, rate } = config.port;
    return { mac, rate, path_mtu: largestPathMtu, gids: config.addresses.length, descriptors: [memory, wake] };
  }

  async #modify(request: ProgramRequest, { datagram }: { datagram: boolean }): Promise<ProgramAnswer> {
    const { broker } = this;
    const state = kStates[request.state];
    const mtu = request.path_mtu;
    if (state === undefined || !(kPathMtus as readonly number[]).includes(mtu) || mtu > broker.largestPathMtu)
      return { error: EINVAL };
    if (request.remote_qpn > 0xff_ffff || request.partition_key > 0xffff) return { error: EINVAL };
    const connects = state === "rtr" && !datagram;
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
      // What concerns the transport alone is the program's own.
      timeout: 0,
      retry_count: 0,
      recovery: "go-back-n",
      window: 0,
      rate_cap: 0,
      ...way,
    });
    return {};
  }
}

/** Empty when the process is not to be seen from here. */
function commandOf(pid: number): string {
  try {
    return pid === 0 ? "" : readFileSync(`/proc/${pid}/comm`, "utf8").trimEnd();
  } catch {
    return "";
  }
}

/** Node.js has no other way to send descriptors along, and to ask who is there. */
function descriptorOf(socket: Socket): number {
  return (socket as unknown as { _handle: { fd: number } })._handle.fd;
}

const nativeAddress = (address: string) => {
  const bytes = addressBytes(address);
  return { version: bytes.length === 4 ? 4 : 6, bytes };
};

function errnoOf(error: unknown): number {
  const { code } = error as { code?: string };
  if (code === "NO_RESOURCES") return ENOMEM;
  if (code?.startsWith("INVALID") === true) return EINVAL;
  if (error instanceof RangeError) return EINVAL;
  return error instanceof WeirError ? EHOSTUNREACH : EIO;
}
