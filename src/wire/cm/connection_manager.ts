/** RDMA CM on one address: connects, listens, and takes every message to the connection that it is about. */
import { randomInt } from "node:crypto";
import { isIP } from "node:net";
import { WeirError } from "../../base/error.js";
import { canonicalAddress, guidOfMac, isGroup } from "../address.js";
import { Connection, type Host } from "./connection.js";
import { type Clock, type FrameLink, type Resolver, systemClock } from "./link.js";
import { buildMessage, kAnswered, kPrivateData, type Message, type MessageKind, portOfService } from "./messages.js";
import { buildReply, buildRequest, offerOf } from "./negotiation.js";
import {
  type ConnectOptions,
  checkPort,
  checkPrivateData,
  codeOfMtu,
  type Established,
  type LocalParameters,
  type PeerParameters,
} from "./parameters.js";
import { type CmCounters, GsiPort, type Peer } from "./port.js";
import { kReject } from "./reject.js";
import { timeOfCode } from "./retransmission.js";
import { ServiceResolver } from "./service_resolution.js";

type AboutConnection = Exclude<MessageKind, "REQ" | "SIDR_REQ" | "SIDR_REP">;

/** IBTA's REQ cannot ask for more. */
const kMaxRetries = 15;
/** A device has no more queue pairs than that. */
const kMostConnections = 4096;
/** Limits against floods of requests: half open connections, of all peers and of one; perftest opens up to 1024 at a time. */
const kMostHalfOpen = 2048;
const kMostHalfOpenOfPeer = 1280;

export interface ManagerOptions {
  link: FrameLink;
  neighbours: Resolver;
  /** Our IP address. */
  address: string;
  clock?: Clock;
  /** Code of the time that peers have for an answer before a message is sent again, 4.096 us x 2^code. Default 18, 1.07 s. */
  responseTimeout?: number;
  /** Returns 32 random bits, for communication IDs and source ports. */
  random?: () => number;
}

/** Somebody wants to connect; the parameters are offers. */
export interface IncomingRequest extends PeerParameters {
  port: number;
  remotePort: number;
  /**
   * To be called once the queue pair can receive: the peer may send before the promise resolves, which it does when the peer says
   * that it is ready. Depths are lowered to what the peer offers. Fails with a WeirError when the peer gave up or does not answer.
   */
  accept(parameters: LocalParameters): Promise<Established>;
  /**
   * At most 148 bytes of private data; `reason` is one of IBTA's, by default that the application refuses. After `accept` it takes
   * that back, unless the peer is ready already.
   */
  reject(privateData?: Uint8Array, reason?: number): void;
  /** To be called after `accept` when the queue pair has received something: the peer is ready then even if its message was lost. */
  dataReceived(): void;
}

export interface Listener {
  readonly port: number;
  /** Later requests are rejected; connections stay. */
  close(): void;
}

export class ConnectionManager {
  /** Resolves services of datagrams. */
  readonly services: ServiceResolver;
  readonly #port: GsiPort;
  readonly #host: Host;
  readonly #neighbours: Resolver;
  readonly #random: () => number;
  readonly #listeners = new Map<number, (request: IncomingRequest) => void>();
  /** Connections by our communication ID. */
  readonly #connections = new Map<number, Connection>();

  constructor({ link, neighbours, address, clock, responseTimeout, random }: ManagerOptions) {
    this.#neighbours = neighbours;
    this.#random = random ?? (() => randomInt(2 ** 32));
    this.#port = new GsiPort(link, address, {
      message: (message, from) => this.#receive(message, from),
      unreachable: (peer) => this.#unreachable(peer),
    });
    this.#host = {
      clock: clock ?? systemClock,
      counters: this.#port.counters,
      address: this.#port.address,
      guid: guidOfMac(link.mac),
      maxRetries: kMaxRetries,
      responseTimeout: responseTimeout ?? 18,
      send: (to, mad) => this.#port.send(to, mad),
      forget: ({ localId }) => this.#connections.delete(localId),
    };
    this.services = new ServiceResolver({
      ...this.#host,
      find: (destination) => this.#find(destination),
      newId: () => this.#newId(),
      newSourcePort: () => this.#newSourcePort(),
    });
  }

  get counters(): CmCounters {
    return this.#port.counters;
  }

  /**
   * Connects; then the queue pair has to become ready, and `ready()` tells the peer. Fails with ConnectionRejected, or with
   * another WeirError when the peer is not found or does not answer.
   */
  async connect(options: ConnectOptions): Promise<Established> {
    checkPort(options.port);
    codeOfMtu(options.pathMtu);
    checkPrivateData(options.privateData, kPrivateData.REQ);
    const peer = await this.#find(options.destination);
    options.signal?.throwIfAborted();
    const connection = this.#add(peer, `${peer.address} port ${options.port}`, "requesting");
    connection.localQpn = options.qpn;
    const sourcePort = options.sourcePort ?? this.#newSourcePort();
    const { req, agree } = buildRequest(options, this.#host, peer, connection.localId, sourcePort);
    options.signal?.addEventListener("abort", () => connection.withdraw(), { once: true });
    return connection.request(req, agree, options.timeoutMs);
  }

  /** Calls `onRequest` for everybody who wants to connect to the port. @throws WeirError if it is taken. */
  listen(port: number, onRequest: (request: IncomingRequest) => void): Listener {
    if (this.#listeners.has(checkPort(port))) {
      throw new WeirError(`something listens on port ${port} already`, { hint: "choose another port" });
    }
    this.#listeners.set(port, onRequest);
    return {
      port,
      close: () => {
        if (this.#listeners.get(port) === onRequest) this.#listeners.delete(port);
      },
    };
  }

  /** Tells peers once; requests that wait for something fail. Idempotent. */
  close(): void {
    this.#listeners.clear();
    this.services.close();
    for (const connection of this.#connections.values()) connection.close();
    this.#port.close();
  }

  get address(): string {
    return this.#port.address;
  }

  async #find(destination: string): Promise<Peer> {
    if (isIP(destination) !== 0 && isGroup(canonicalAddress(destination))) {
      throw new WeirError(`${destination} is a multicast group`, { hint: "connect to an address of one host" });
    }
    const mac = await this.#neighbours.resolve(destination);
    return { address: canonicalAddress(destination), mac };
  }

  #add(peer: Peer, name: string, state: "requesting" | "requested"): Connection {
    const connection = new Connection(this.#host, this.#newId(), peer, name, state);
    this.#connections.set(connection.localId, connection);
    return connection;
  }

  /** Draws an ID that nobody can guess who does not see our messages. */
  #newId(): number {
    for (;;) {
      const id = this.#random();
      if (id !== 0 && !this.#connections.has(id)) return id;
    }
  }

  /** Draws a port from the range that RoCEv2 spreads flows over. */
  #newSourcePort(): number {
    return 0xc000 | (this.#random() & 0x3fff);
  }

  #receive(message: Message, from: Peer): void {
    if (message.kind === "REQ") this.#receiveRequest(message, from);
    else if (message.kind === "SIDR_REQ" || message.kind === "SIDR_REP") this.services.receive(message, from);
    else this.#receiveAnswer(message, from);
  }

  #unreachable(address: string): void {
    for (const connection of this.#connections.values()) {
      if (connection.peer.address === address) connection.unreachable();
    }
    this.services.unreachable(address);
  }

  #receiveAnswer(message: Message<AboutConnection>, from: Peer): void {
    const connection = this.#connectionOf(message, from);
    if (connection !== undefined) {
      connection.receive(message);
      return;
    }
    this.counters.unexpected++;
    if (message.kind !== "DREQ") return;
    // Its connection is forgotten here: the peer need not repeat itself until it gives up.
    const { localId, remoteId } = message.fields;
    this.#port.send(from, buildMessage("DREP", message.transaction, { localId: remoteId, remoteId: localId }));
  }

  /** Returns undefined unless both IDs, as far as they are known, and the peer's address are right. */
  #connectionOf({ kind, fields }: Message<AboutConnection>, from: Peer): Connection | undefined {
    let connection = this.#connections.get(fields.remoteId);
    if (kind === "REJ" && fields.reason === kReject.timeout && fields.remoteId === 0) {
      // A peer that gave up before it knew our ID: it names its adapter.
      connection = this.#requestOf(fields.info.subarray(0, fields.infoLength), fields.localId);
    }
    if (connection?.peer.address !== from.address) return;
    return connection.remoteId === 0 || connection.remoteId === fields.localId ? connection : undefined;
  }

  /** Finds the connection that a peer asked for with this ID. */
  #requestOf(guid: Buffer, remoteId: number): Connection | undefined {
    for (const connection of this.#connections.values()) {
      if (connection.remoteId === remoteId && connection.wasAsked && connection.remoteGuid.equals(guid))
        return connection;
    }
    return;
  }

  #receiveRequest(message: Message<"REQ">, from: Peer): void {
    const { fields, transaction } = message;
    const repeated = this.#requestOf(fields.localGuid, fields.localId);
    if (repeated?.peer.address === from.address) {
      repeated.repeatedRequest();
      return;
    }
    const port = portOfService("connected", fields.serviceId) ?? 0;
    const onRequest = this.#listeners.get(port);
    const offer = this.#judge(message, from, onRequest !== undefined);
    if (offer === undefined) {
      this.counters.malformed++;
      return;
    }
    if (typeof offer === "number") {
      const refusal = { remoteId: fields.localId, answered: kAnswered.REQ, reason: offer };
      this.#port.send(from, buildMessage("REJ", transaction, refusal));
      return;
    }
    const connection = this.#add(from, `${from.address} port ${offer.remotePort}`, "requested");
    connection.transaction = transaction;
    connection.remoteId = fields.localId;
    connection.remoteGuid = Buffer.from(fields.localGuid);
    connection.remoteQpn = fields.localQpn;
    onRequest?.({
      ...offer,
      port,
      accept: async (own) => {
        const { rep, agreed } = buildReply(offer, own, this.#host.guid, connection, transaction);
        return connection.reply(rep, own.qpn, agreed, timeOfCode(fields.localResponseTimeout), fields.maxRetries);
      },
      reject: (privateData, reason = kReject.consumer) =>
        connection.refuse(reason, checkPrivateData(privateData, kPrivateData.REJ)),
      dataReceived: () => connection.establish(),
    });
  }

  /** Returns what a request offers, or like `offerOf` why it is refused or ignored. */
  #judge(message: Message<"REQ">, from: Peer, isServed: boolean): ReturnType<typeof offerOf> {
    const offer = offerOf(message, this.#port.address, from);
    if (typeof offer !== "object") return offer;
    if (!isServed) return kReject.invalidServiceId;
    if (!this.#makeRoom(from.address)) return kReject.noResources;
    for (const old of this.#connections.values()) {
      const isSame = old.remoteQpn === offer.remoteQpn && old.peer.address === from.address;
      if (!isSame || !old.isConnected) continue;
      old.superseded();
      return kReject.staleConnection;
    }
    return offer;
  }

  /**
   * Makes room for one more request of the peer at `address`: the connection that is half open longest gives way, of the same
   * peer first: its requests may be forged, and so may everybody's. Returns false if all connections are established.
   */
  #makeRoom(address: string): boolean {
    const halfOpen: Connection[] = [];
    let ended: Connection | undefined;
    for (const connection of this.#connections.values()) {
      if (connection.isHalfOpen) halfOpen.push(connection);
      else if (connection.state === "ended") ended ??= connection;
    }
    const ofPeer = halfOpen.filter(({ peer }) => peer.address === address);
    const isFull = this.#connections.size >= kMostConnections;
    if (ofPeer.length >= kMostHalfOpenOfPeer) ofPeer[0]?.giveWay();
    else if (halfOpen.length >= kMostHalfOpen) halfOpen[0]?.giveWay();
    else if (isFull && ended !== undefined) this.#connections.delete(ended.localId);
    else if (isFull && halfOpen.length > 0) halfOpen[0]?.giveWay();
    else if (isFull) this.counters.refused++;
    return this.#connections.size < kMostConnections;
  }
}
