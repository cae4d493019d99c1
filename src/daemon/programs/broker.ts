/**
 * Serves the programs that use a NIC: identities, queue pairs, ways to their peers. native/endpoint/program_protocol.h has the
 * requests; a program's transport runs in its own process.
 */
import { rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";
import { WeirError } from "../../base/error.js";
import { makeFolder } from "../../base/folder.js";
import { hearsTelemetry } from "../../congestion/flow_state.js";
import { senderOf } from "../../device/compose.js";
import { probe } from "../../device/control_client.js";
import { neighboursOf } from "../../device/neighbours.js";
import { pathTo, routeFrom } from "../../device/path.js";
import type { ProgramIdentity } from "../../device/protocol.js";
import type { NativePath, ProgramRequest } from "../../native/types.js";
import { dscpOf } from "../../scenario/resolve_device.js";
import { addressOfGid } from "../../wire/address.js";
import { GroupReports } from "../../wire/cm/group_reports.js";
import type { Resolver } from "../../wire/cm/link.js";
import { kTelemetryBytes, largestPathMtu } from "../../wire/frame_size.js";
import { kPriorities } from "../../wire/priority.js";
import { isHello, kHelloBytes, type OwnAddress, ProgramConnections } from "./connections.js";
import { DeviceCounters, kCountersMs } from "./device_counters.js";
import { DeviceFiles, kFilesSuffix, type PortFacts } from "./device_files.js";
import { GidTable } from "./gid_table.js";
import { descriptorOf, type ProgramHost, type ProgramNicConfig, ProgramSession, type SessionHost } from "./session.js";
import { Shares } from "./shares.js";
import { openToGroup } from "./socket_access.js";

const kOwnerOnly = 0o177;
/** Each channel of librdmacm is a connection, and each program. */
const kMostConnections = 8192;
/** Memberships of all programs in multicast groups: as many as the groups that the NIC may be a member of. */
const kMostMemberships = 4096;
const kHelloMs = 5000;
/** Queue pairs 0 and 1 are for management (IBTA volume 1, 3.9). */
const kLastManagementQpn = 1;
export class ProgramBroker implements SessionHost {
  readonly #connections = new Set<ProgramSession>();
  readonly #sockets = new Set<Socket>();
  readonly #gids = new GidTable();
  /** What finds peers from each own address. */
  readonly #neighbours = new Map<string, Resolver>();
  /** Largest path MTU that programs have been told of. */
  #toldMtu: number;
  /** Serves programs that use librdmacm. */
  readonly #cm: ProgramConnections;
  readonly groups: GroupReports;
  readonly shares: SessionHost["shares"];
  readonly #connected = new Shares(kMostConnections);
  readonly #files: DeviceFiles;
  readonly #counters: DeviceCounters;
  #refresh: NodeJS.Timeout | undefined;
  readonly #onExit = () => this.#removeFiles();

  private constructor(
    readonly host: ProgramHost,
    public config: ProgramNicConfig,
    private readonly server: Server,
    readonly path: string,
  ) {
    const { link } = host;
    this.#toldMtu = this.largestPathMtu;
    this.#takeAddresses();
    this.groups = new GroupReports({ link, addresses: config.addresses });
    this.shares = {
      programs: new Shares(host.addon.mostPrograms()),
      queuePairs: new Shares(host.queuePairs),
      memberships: new Shares(kMostMemberships),
    };
    this.#cm = new ProgramConnections({
      groups: this.groups,
      memberships: this.shares.memberships,
      addresses: this.#ownAddresses(),
      pathMtu: () => this.#toldMtu,
      link,
      credentials: (socket) => host.addon.peerCredentials(descriptorOf(socket)),
      mayNameQueuePair: (uid, qpn) => this.mayNameQueuePair(uid, qpn),
    });
    this.#counters = new DeviceCounters(host.device.name, () => host.device.counted());
    const { port, name } = config;
    this.#files = new DeviceFiles(path.replace(/\.verbs$/, "") + kFilesSuffix, {
      name,
      interface: port.interface,
      mac: port.mac,
      rate: port.rate,
      socket: path,
    });
  }

  /** Listens at `path`, which only its owner may open. @throws WeirError when another daemon does, or the socket cannot be made. */
  static async open(path: string, config: ProgramNicConfig, host: ProgramHost): Promise<ProgramBroker> {
    makeFolder(dirname(path), 0o755);
    if (await probe(path)) throw new WeirError(`another daemon serves programs at ${path}`, { hint: "stop it first" });
    rmSync(path, { force: true });
    const server = createServer();
    const broker = new ProgramBroker(host, config, server, path);
    server.on("connection", (socket) => broker.#serve(socket));
    try {
      await listenPrivately(server, path);
      const group = config.programs?.group;
      if (group !== undefined) openToGroup(path, group);
      // They replace what a daemon that was killed has left, which may be of another NIC.
      broker.#files.write(broker.#facts());
    } catch (error) {
      broker.close();
      if (error instanceof WeirError) throw error;
      throw new WeirError(`socket for programs ${path}: ${(error as NodeJS.ErrnoException).code}`, {
        cause: error,
        hint: "run as root, or set `control` to a path that you may write",
      });
    }
    // A connection that could not be accepted (no descriptors left) is the program's to repeat.
    server.on("error", () => {});
    process.on("exit", broker.#onExit);
    broker.#refresh = setInterval(() => broker.#look(), kCountersMs).unref();
    return broker;
  }

  /** Takes what has changed of the NIC, after its worker: addresses, gateways, priorities. Programs hear of another table of GIDs. */
  reconfigure(config: ProgramNicConfig): void {
    this.config = config;
    if (!this.#takeAddresses()) return;
    this.groups.takeAddresses(config.addresses);
    this.#cm.takeAddresses(this.#ownAddresses());
    this.#files.refresh(this.#facts());
    this.host.worker.tellPrograms(0, true, this.#toldMtu);
  }

  /**
   * Whether a user's program may tell a peer this number as its queue pair's. One that nobody has is as good as one of its own, as on Linux:
   * it tries out connections, or drives the queue pair otherwise.
   */
  mayNameQueuePair(uid: number, qpn: number): boolean {
    if (qpn <= kLastManagementQpn || this.config.queue_pairs?.some((own) => own.qpn === qpn)) return false;
    const others = [...this.#connections].filter(({ number, identity }) => number !== 0 && identity.uid !== uid);
    return !others.some(({ has }) => has(qpn));
  }

  /** Those that are connected and have said hello, by their numbers. */
  programs(): Map<number, ProgramIdentity> {
    const all = [...this.#connections].filter(({ number }) => number !== 0);
    return new Map(all.map(({ number, identity }) => [number, identity]));
  }

  /** How many of them have paths of their own. */
  lent(): number {
    return [...this.#connections].filter(({ direct }) => direct).length;
  }

  /** Tells whether a program of librdmacm listens at the port. */
  isListenedAt(port: number): boolean {
    return this.#cm.isListenedAt(port);
  }

  /** Tells programs that the NIC is gone. Idempotent. */
  close(): void {
    process.off("exit", this.#onExit);
    clearInterval(this.#refresh);
    this.#removeFiles();
    this.server.close();
    this.#cm.close();
    for (const connection of this.#connections) connection.close();
    for (const socket of this.#sockets) socket.destroy();
    this.groups.close();
  }

  /** Largest path MTU, bytes, with room for telemetry of switches if the NIC's congestion control goes by that. */
  get largestPathMtu(): number {
    const { port, congestion } = this.config;
    const [{ interface_mtu: mtu = null } = {}] = this.host.device.ports();
    return (
      largestPathMtu(Math.min(port.mtu, mtu ?? port.mtu), hearsTelemetry(congestion.algorithm) ? kTelemetryBytes : 0) ??
      256
    );
  }

  /** Finds the way to a peer, with its priority. @throws RangeError for a GID that is not ours, WeirError when nobody answers there. */
  async wayTo(request: ProgramRequest, order: number): Promise<{ path: NativePath; priority: number }> {
    const { config } = this;
    const own = this.#gids.places[request.source_index];
    const neighbours = own === undefined ? undefined : this.#neighbours.get(own);
    if (own === undefined || neighbours === undefined) throw new RangeError("there is no such GID");
    // Without a GID the peer is the NIC itself.
    const address = request.gid.some((byte) => byte !== 0) ? addressOfGid(Uint8Array.from(request.gid)) : own;
    const { traffic_class, service_level, hop_limit } = request;
    if (traffic_class > 0xff || service_level >= kPriorities.length || hop_limit > 0xff)
      throw new RangeError("no such way");
    const meant = service_level || (config.programs?.priority ?? 0);
    const dscp = traffic_class >> 2 || dscpOf(config.classes.dscp_map, meant);
    const priority = config.classes.dscp_map[dscp] ?? 0;
    const mac = await neighbours.resolve(address);
    const sender = { ...senderOf(config), sourceFor: () => own };
    const path = pathTo(sender, { address, mac }, dscp, priority, order);
    return { path: { ...path, ...(hop_limit > 0 && { ttl: hop_limit }) }, priority };
  }

  /** The path of a queue pair that has no peer yet. */
  nowhere(priority: number): NativePath {
    return pathTo(senderOf(this.config), undefined, 0, priority, 0);
  }

  #serve(socket: Socket): void {
    const uid = this.#userOf(socket);
    if (uid === undefined || !this.#connected.take(uid)) {
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    const patience = setTimeout(() => socket.destroy(), kHelloMs).unref();
    socket
      .on("error", () => {})
      .on("close", () => {
        clearTimeout(patience);
        this.#sockets.delete(socket);
        this.#connected.give(uid);
      });
    let begun = Buffer.alloc(0);
    const hear = (bytes: Buffer) => {
      begun = Buffer.concat([begun, bytes]);
      // A part of a hello is none yet.
      if (isHello(begun) && begun.length < kHelloBytes) return;
      socket.off("data", hear);
      if (isHello(begun)) {
        clearTimeout(patience);
        this.#cm.serve(socket, begun);
      } else this.#begin(socket, begun, patience);
    };
    socket.on("data", hear);
  }

  /** Returns undefined if the program has gone already. */
  #userOf(socket: Socket): number | undefined {
    try {
      return this.host.addon.peerCredentials(descriptorOf(socket)).uid;
    } catch {
      return undefined;
    }
  }

  #begin(socket: Socket, first: Buffer, patience: NodeJS.Timeout): void {
    const connection = new ProgramSession(this, socket, patience);
    this.#connections.add(connection);
    socket.on("close", () => {
      this.#connections.delete(connection);
      connection.close();
    });
    connection.receive(first);
  }

  /** @returns whether the table of GIDs is another one. */
  #takeAddresses(): boolean {
    const { worker } = this.host;
    const { mac } = this.config.port;
    const addresses = () => this.config.addresses;
    const changed = this.#gids.take(addresses());
    for (const from of addresses()) {
      const route = (destination: string) => routeFrom(this.config.gateways ?? [], from)(destination);
      if (!this.#neighbours.has(from))
        this.#neighbours.set(from, neighboursOf({ worker, mac, addresses, from, route }));
    }
    for (const from of this.#neighbours.keys()) if (!addresses().includes(from)) this.#neighbours.delete(from);
    return changed;
  }

  #ownAddresses(): OwnAddress[] {
    return this.#gids.places.flatMap((address, index) => {
      const neighbours = address === undefined ? undefined : this.#neighbours.get(address);
      return address === undefined || neighbours === undefined ? [] : [{ address, index, neighbours }];
    });
  }

  /** Brings what programs see up to date. */
  #look(): void {
    const mtu = this.largestPathMtu;
    if (mtu !== this.#toldMtu) this.host.worker.tellPrograms(0, false, mtu);
    this.#toldMtu = mtu;
    this.#files.refresh(this.#facts());
  }

  #facts(): PortFacts {
    const [port] = this.host.device.ports();
    const gids = this.#gids.places;
    return { up: port?.up === true, gids, counters: this.#counters.files(Math.ceil((port?.transitions ?? 0) / 2)) };
  }

  #removeFiles(): void {
    this.#files.remove();
    rmSync(this.path, { force: true });
  }
}

/** The socket is its owner's from its first moment. */
async function listenPrivately(server: Server, path: string): Promise<void> {
  const umask = process.umask(kOwnerOnly);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(path, resolve);
    });
  } finally {
    process.umask(umask);
  }
}
