/** Connected queue pairs by RDMA CM, like rdma_connect and rdma_accept for C programs. */
import { randomInt } from "node:crypto";
import type { IncomingRequest } from "../wire/cm/connection_manager.js";
import type { Disconnection, Established, PeerParameters } from "../wire/cm/parameters.js";
import type { OwnPsn } from "./connector.js";
import type { Device } from "./device.js";
import { peerAddress } from "./peer_address.js";
import type { QueuePair } from "./queue_pair.js";
import type { QueuePairAttributes } from "./types.js";

/** Attributes on which the two ends need not agree: each chooses its own. */
export type ConnectionAttributes = Partial<
  Pick<
    QueuePairAttributes,
    "access" | "minRnrTimer" | "recovery" | "window" | "priority" | "dscp" | "rateCap" | "timeout"
  >
>;

export interface ConnectOptions {
  /** IP address or name of the listener. */
  address: string;
  port: number;
  /** A queue pair in state reset or init. */
  queuePair: QueuePair;
  /** Data for the peer, at most 56 bytes. */
  privateData?: Uint8Array;
  /** Path MTU. Default: the largest of the device. */
  pathMtu?: QueuePairAttributes["pathMtu"];
  /** READs and atomics under way, in each direction. Default 16. */
  maxRdAtomic?: number;
  retryCount?: number;
  rnrRetry?: number;
  attributes?: ConnectionAttributes;
}

export interface AcceptOptions {
  queuePair: QueuePair;
  /** Data for the peer, at most 196 bytes. */
  privateData?: Uint8Array;
  maxRdAtomic?: number;
  rnrRetry?: number;
  attributes?: ConnectionAttributes;
}

/** A request of a peer that wants to connect. */
export interface Request {
  address: string;
  port: number;
  privateData: Buffer;
  /** Resolves once the peer is ready too. @throws WeirError when it gave up meanwhile. */
  accept(options: AcceptOptions): Promise<Connection>;
  reject(privateData?: Uint8Array): void;
}

export class Connection {
  #ended = false;

  /** Use connect() or listen(). */
  constructor(
    readonly queuePair: QueuePair,
    private readonly established: Established,
  ) {
    established.onDisconnected(() => this.#end());
  }

  get remoteAddress(): string {
    return this.established.remoteAddress;
  }
  get remoteQpn(): number {
    return this.established.remoteQpn;
  }
  /** Data that the peer gave with its request or its acceptance, then zeros. */
  get privateData(): Buffer {
    return this.established.privateData;
  }
  get pathMtu(): number {
    return this.established.pathMtu;
  }

  /** Calls back when the connection has ended, and says how; the queue pair is in the error state then. */
  onDisconnected(callback: (end: Disconnection) => void): void {
    this.established.onDisconnected(callback);
  }

  /** Disconnects; posted work that is not complete is flushed. Idempotent. */
  async disconnect(): Promise<void> {
    this.#end();
    await this.established.disconnect();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const { state } = this.queuePair;
    if (state !== "reset" && state !== "error") this.queuePair.modify("error");
  }
}

/** Connects a queue pair; it is in RTS afterwards. @throws WeirError, ConnectionRejected. */
export async function connect(device: Device, options: ConnectOptions): Promise<Connection> {
  const { queuePair, port, privateData, maxRdAtomic = 16, retryCount = 7, rnrRetry = 7 } = options;
  const address = await peerAddress(device, options.address);
  const startingPsn = randomInt(1 << 24);
  const pathMtu = options.pathMtu ?? device.largestPathMtu;
  prepare(queuePair, { ...options.attributes, pathMtu });
  const established = await device.managerFor(address).connect({
    destination: address,
    port,
    qpn: queuePair.qpn,
    startingPsn,
    pathMtu: pathMtu as PeerParameters["pathMtu"],
    responderResources: maxRdAtomic,
    initiatorDepth: maxRdAtomic,
    retryCount,
    rnrRetryCount: rnrRetry,
    ...(privateData !== undefined && { privateData }),
  });
  try {
    raise(queuePair, established, established.startingPsn ?? startingPsn, options.attributes);
    established.ready();
  } catch (error) {
    await established.disconnect();
    throw error;
  }
  return new Connection(queuePair, established);
}

/** Calling it ends listening. */
export interface Listening {
  (): void;
  /**
   * Resolves when it listens. On a daemon's NIC it fails if somebody listens there already; on a device's own interface
   * listen() itself does.
   */
  readonly ready: Promise<void>;
}

/** Calls `onRequest` for everybody who wants to connect to `port` at one of the device's addresses. */
export function listen(device: Device, port: number, onRequest: (request: Request) => void): Listening {
  device.requireOpen();
  const listeners = device.managers.map((manager) =>
    manager.listen(port, (request) => onRequest(incoming(device, request))),
  );
  const stop = () => {
    for (const listener of listeners) listener.close();
  };
  const ready = Promise.all(listeners.map((listener) => listener.ready)).then(() => {});
  return Object.assign(stop, { ready });
}

function incoming(device: Device, request: IncomingRequest & OwnPsn): Request {
  return {
    address: request.remoteAddress,
    port: request.port,
    privateData: request.privateData,
    reject: (privateData) => request.reject(privateData),
    accept: async ({ queuePair, privateData, maxRdAtomic = 16, rnrRetry = 7, attributes }) => {
      const startingPsn = request.startingPsn ?? randomInt(1 << 24);
      const depth = (offered: number) => Math.min(offered, maxRdAtomic);
      prepare(queuePair, attributes);
      const pathMtu = Math.min(request.pathMtu, device.largestPathMtu) as PeerParameters["pathMtu"];
      // It is made able to send as well: the peer may answer before its RTU gets here, or the RTU may be lost.
      raise(queuePair, { ...request, pathMtu }, startingPsn, attributes);
      const established = await request.accept({
        qpn: queuePair.qpn,
        startingPsn,
        responderResources: depth(request.responderResources),
        initiatorDepth: depth(request.initiatorDepth),
        rnrRetryCount: rnrRetry,
        ...(privateData !== undefined && { privateData }),
      });
      return new Connection(queuePair, established);
    },
  };
}

/** Checks the attributes before the peer hears of us. */
function prepare(queuePair: QueuePair, attributes: Partial<QueuePairAttributes> = {}): void {
  if (queuePair.state === "reset") queuePair.modify("init", attributes);
}

/** Brings the queue pair to RTS. */
function raise(
  queuePair: QueuePair,
  peer: PeerParameters,
  startingPsn: number,
  attributes: ConnectionAttributes = {},
): void {
  queuePair.modify("rtr", {
    route: { address: peer.remoteAddress, mac: peer.remoteMac },
    remoteQpn: peer.remoteQpn,
    // A REQ or REP names the PSN that its sender wants to receive first (IBTA volume 1, 12.7.7).
    receivePsn: startingPsn,
    sendPsn: peer.remoteStartingPsn,
    pathMtu: peer.pathMtu,
    maxRdAtomic: Math.max(1, peer.initiatorDepth),
    maxDestRdAtomic: Math.max(1, peer.responderResources),
    retryCount: peer.retryCount,
    rnrRetry: peer.rnrRetryCount,
    timeout: peer.ackTimeout,
    ...attributes,
  });
  queuePair.modify("rts");
}
