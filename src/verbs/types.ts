/** Types that applications give and get, named as in libibverbs. */
import type { NativeQueueAttributes } from "../native/types.js";
import type { AddressHandle } from "./address_handle.js";

/** Rights to a region; remote_* are those of peers who know its key. `remote_invalidate`: they may take the key away. */
export const kAccess = {
  local_write: 1,
  remote_write: 2,
  remote_read: 4,
  remote_atomic: 8,
  remote_invalidate: 16,
} as const;
export type Access = keyof typeof kAccess;

export function accessBits(access: readonly Access[]): number {
  return access.reduce((bits, right) => bits | kAccess[right], 0);
}

/** A piece of registered memory. */
export interface Slice {
  region: Memory;
  /** Bytes from the start of the region. Default 0. */
  offset?: number;
  /** Length in bytes. Default: up to the end of the region; for an atomic, 8. */
  length?: number;
}

/** Memory of the peer, as told by the peer. */
export interface RemoteMemory {
  address: bigint;
  key: number;
}

/** A request stands for several that are all the same: each of them is a work request. */
export interface Repeated {
  /** Number of requests. Default 1. */
  times?: number;
}

interface SendBase extends Repeated {
  /** Number that comes back in the completion. Default 0. */
  id?: number;
  /** Asks for a completion also on success. Default true. */
  signaled?: boolean;
  /** Makes the peer's completion a solicited event. */
  solicited?: boolean;
  /** Holds the request until all earlier READs and atomics are complete. */
  fence?: boolean;
}

/** A request to send; without `local` the message has no bytes. */
export type SendRequest = SendBase &
  (
    | { opcode: "send"; local?: Slice; to?: Destination }
    | { opcode: "send_with_imm"; local?: Slice; immediate: number; to?: Destination }
    | { opcode: "send_with_inv"; local?: Slice; invalidateKey: number }
    | { opcode: "rdma_write"; local?: Slice; remote: RemoteMemory }
    | { opcode: "rdma_write_with_imm"; local?: Slice; remote: RemoteMemory; immediate: number }
    | { opcode: "rdma_read"; local?: Slice; remote: RemoteMemory }
    /** `local` takes the 8 bytes that were there. */
    | { opcode: "atomic_cmp_and_swp"; local: Slice; remote: RemoteMemory; compare: bigint; swap: bigint }
    | { opcode: "atomic_fetch_and_add"; local: Slice; remote: RemoteMemory; add: bigint }
  );

/** Destination of a datagram. */
export interface Destination {
  address: AddressHandle;
  qpn: number;
  queueKey: number;
}

export interface ReceiveRequest extends Repeated {
  id?: number;
  /** Memory for the message; may be absent only for messages of no bytes. */
  local?: Slice;
}

/** Names of ibv_wc_status. */
export const kStatus = {
  0: "success",
  1: "loc_len_err",
  2: "loc_qp_op_err",
  4: "loc_prot_err",
  5: "wr_flush_err",
  6: "mw_bind_err",
  7: "bad_resp_err",
  8: "loc_access_err",
  9: "rem_inv_req_err",
  10: "rem_access_err",
  11: "rem_op_err",
  12: "retry_exc_err",
  13: "rnr_retry_exc_err",
  16: "rem_abort_err",
  19: "fatal_err",
  21: "general_err",
} as const;
export type Status = (typeof kStatus)[keyof typeof kStatus];

/** A completion of a queue pair that its reader knows. */
export interface Completion {
  id: number;
  status: Status;
  opcode: SendRequest["opcode"] | "recv" | "recv_rdma_with_imm";
  /** Bytes received, read, or sent. */
  byteLength: number;
  /** Number of completions in a row that are all the same, in a queue that joins them; else 1. */
  times: number;
  immediate?: number | undefined;
  invalidatedKey?: number | undefined;
  /** Sender of a datagram. The first 40 bytes of its buffer are the network header. */
  sourceQpn?: number | undefined;
}

export type State = NativeQueueAttributes["state"];

/** The way to a peer. */
export interface Route {
  /** IPv4 or IPv6 address. */
  address: string;
  /** MAC address of the peer or of the router, 48 bits, as found by Device.resolve(). */
  mac: number;
}

/** Attributes of a queue pair on its way to RTS. Numbers are those of ibv_qp_attr. */
export interface QueuePairAttributes {
  /** Rights of the peer through this queue pair. Default: remote_write, remote_read, remote_atomic. */
  access: readonly Access[];
  /** 256, 512, 1024, 2048 or 4096. Default: the largest that the interface's MTU allows. */
  pathMtu: number;
  remoteQpn: number;
  /** First PSN that is sent, and that is expected. */
  sendPsn: number;
  receivePsn: number;
  /** Local ACK timeout: 4.096 us x 2^timeout; 0: none. Default 14. */
  timeout: number;
  /** 0 to 7. Default 7. */
  retryCount: number;
  /** 0 to 7; 7: without end. Default 7. */
  rnrRetry: number;
  /** Code of the delay that our RNR NAKs ask for, 0 to 31. Default 12: 0.64 ms. */
  minRnrTimer: number;
  /** READs and atomics under way, as requester and as responder, 1 to 128. Default 16. */
  maxRdAtomic: number;
  maxDestRdAtomic: number;
  /** Recovery from loss; both ends must agree on selective-repeat. Default go-back-n. */
  recovery: "go-back-n" | "selective-repeat";
  /** Most packets in flight, 4 to 65536, with selective-repeat 256. Default: 1 MiB of them, no fewer than 256; with selective-repeat 256. */
  window: number;
  partitionKey: number;
  /** Key of UD. */
  queueKey: number;
  route: Route;
  /** Priority (traffic class) and DSCP of packets. Default: the device's. */
  priority: number;
  dscp: number;
  /** Rate limit, bit/s; 0: line rate. */
  rateCap: number;
}

/** A memory region. */
export interface Memory {
  readonly buffer: ArrayBuffer;
  readonly key: number;
  readonly start: number;
  readonly byteLength: number;
}
