/** Parameters of queue pairs that the two sides of a connection tell each other. Counts and codes are those of IBTA, 12.6. */
import { WeirError } from "../../base/error.js";
import { kPathMtus, type PathMtu } from "./messages.js";

/** Our queue pair, for a REQ or a REP. */
export interface LocalParameters {
  /** 24 bits, as is the PSN. */
  qpn: number;
  startingPsn: number;
  /** Data for the other application: at most 56 bytes with a request, 196 with its acceptance. */
  privateData?: Uint8Array;
  /** READs and atomics that the peer may have under way towards us, 0 to 255. */
  responderResources?: number;
  /** READs and atomics that we may have under way towards the peer, 0 to 255. */
  initiatorDepth?: number;
  /** Number of retries that the peer is to use against our RNR NAKs: 0 to 6, or 7 for no end. Default 7. */
  rnrRetryCount?: number;
}

export interface ConnectOptions extends LocalParameters {
  /** IP address. */
  destination: string;
  /** Port in the RDMA CM's port space for connections, as in rdma_connect. */
  port: number;
  /** bytes */
  pathMtu: PathMtu;
  /** How often either side sends a packet again: 0 to 7. Default 7. */
  retryCount?: number;
  /** Code of the local ACK timeout, 0 to 31: the peer waits 4.096 us x 2^code for our acknowledgements. Default 19, 2.1 s. */
  ackTimeout?: number;
  /** Traffic class of the packets of the connection: DSCP and ECN, 0 to 255. Default 0. */
  trafficClass?: number;
  /** Our own source port as the peer is to see it. Default: one of 49152 to 65535. */
  sourcePort?: number;
  /** Once it is aborted nobody waits for the peer's answer, and the peer is told. */
  signal?: AbortSignal;
  /** Time for the peer's answer, ms. Default: as long as retransmissions go on, 17 s unless the peer asks for more. */
  timeoutMs?: number;
}

/** Everything that a queue pair needs to know to become ready; depths are seen from our side and suit both. */
export interface PeerParameters {
  remoteAddress: string;
  /** MAC address of the peer, or of the router towards it, as a 48-bit number. */
  remoteMac: number;
  remoteQpn: number;
  remoteStartingPsn: number;
  /** The whole field: what the peer gave, then zeros. */
  privateData: Buffer;
  responderResources: number;
  initiatorDepth: number;
  pathMtu: PathMtu;
  retryCount: number;
  rnrRetryCount: number;
  /** Code of the local ACK timeout. */
  ackTimeout: number;
  trafficClass: number;
  /** 20 bits: Linux derives the UDP source port of the connection from it. */
  flowLabel: number;
}

/**
 * How a connection has ended. `peer`: the other side disconnected, or its program has ended. `own`: we did, and it has said that it
 * knows. `timeout`: we did, and it has not answered: it may not know. `rejected`: it has taken back a connection that was up (REJ),
 * with one of IBTA's reasons (volume 1, 12.6.7.2). `closed`: the device, or the daemon whose NIC it is, has gone.
 */
export type Disconnection =
  | { readonly reason: "peer" | "own" | "timeout" | "closed" }
  | { readonly reason: "rejected"; readonly code: number; readonly privateData: Buffer };

/** A connection whose both ends know each other. */
export interface Established extends PeerParameters {
  /**
   * Tells the peer (RTU), on the side that asked, once its queue pair can send. @throws WeirError if the connection has ended
   * meanwhile. On the side that accepted it does nothing.
   */
  ready(): void;
  /** Tells the peer (DREQ) and waits for its answer, or until it has not answered often enough. Never fails; idempotent. */
  disconnect(): Promise<void>;
  /** Calls `listener` once, when it is known how the connection has ended; at once if it is known already. */
  onDisconnected(listener: (end: Disconnection) => void): void;
}

/** @throws WeirError if `mtu` is none that a path can have. */
export function codeOfMtu(mtu: number): number {
  const index = (kPathMtus as readonly number[]).indexOf(mtu);
  if (index < 0) throw new WeirError(`a path MTU of ${mtu} bytes`, { hint: `choose one of ${kPathMtus.join(", ")}` });
  return index + 1;
}

/** @throws WeirError if `port` is none. */
export function checkPort(port: number): number {
  if (Number.isInteger(port) && port >= 1 && port <= 65535) return port;
  throw new WeirError(`port ${port}`, { hint: "choose one from 1 to 65535" });
}

/** @throws WeirError if there is more than `most` bytes. */
export function checkPrivateData(data: Uint8Array | undefined, most: number): Buffer {
  if (data === undefined) return Buffer.alloc(0);
  if (data.length > most) {
    throw new WeirError(`${data.length} bytes of private data`, { hint: `this message carries at most ${most}` });
  }
  return Buffer.from(data);
}

/** Computes it as Linux does, from our code and the delay that the peer's adapter has before it acknowledges. */
export function ackTimeoutWith(targetAckDelay: number, ackTimeout: number): number {
  const [longer, shorter] = ackTimeout >= targetAckDelay ? [ackTimeout, targetAckDelay] : [targetAckDelay, ackTimeout];
  return Math.min(longer + Number(shorter >= longer - 1), 31);
}
