/**
 * The commands by which librdmacm asks for connections, and their answers and events: the ABI of /dev/infiniband/rdma_cm, version
 * 4, in the host's order of bytes (Linux, include/uapi/rdma/rdma_user_cm.h). Commands for InfiniBand's own addresses (AF_IB) are
 * not there: librdmacm sees that, and uses those for IP.
 */
import { addressBytes, addressOfGid, addressText, gidOfAddress } from "../../wire/address.js";

/** Numbers of commands. */
export const kCommand = {
  createId: 0,
  destroyId: 1,
  bindIp: 2,
  resolveIp: 3,
  resolveRoute: 4,
  queryRoute: 5,
  connect: 6,
  listen: 7,
  accept: 8,
  reject: 9,
  disconnect: 10,
  initQpAttr: 11,
  getEvent: 12,
  setOption: 14,
  notify: 15,
  joinGroup: 16,
  leaveGroup: 17,
  migrateId: 18,
} as const;

/** Numbers of events. */
export const kEvent = {
  addressResolved: 0,
  addressError: 1,
  routeResolved: 2,
  connectRequest: 4,
  connectResponse: 5,
  unreachable: 7,
  rejected: 8,
  established: 9,
  disconnected: 10,
  groupJoined: 12,
  addressChange: 14,
  timewaitExit: 15,
} as const;

export const kPortSpace = { tcp: 0x0106, udp: 0x0111 } as const;
/** Levels and names of options. */
export const kOption = { levelId: 0, tos: 0, reuseAddress: 1, addressFamilyOnly: 2, ackTimeout: 3 } as const;
/** IBV_EVENT_COMM_EST: something came before the peer said that it is ready. */
export const kCommunicationEstablished = 5;

const kHeader = 8;
const kPrivateData = 256;
const kInet = 2;
const kInet6 = 10;

/** Parameters that a program gives when it connects or accepts. */
export interface ConnectionParameters {
  qpn: number;
  qkey: number;
  privateData: Buffer;
  responderResources: number;
  initiatorDepth: number;
  retryCount: number;
  rnrRetryCount: number;
}

export interface SocketAddress {
  /** The address as canonical text. */
  address: string;
  port: number;
}

type CommandOf<Kind extends number, Fields> = { kind: Kind; id: number } & Fields;
type K = typeof kCommand;
export type Command =
  | CommandOf<K["createId"], { uid: bigint; space: number }>
  | CommandOf<K["joinGroup"], { uid: bigint; address: SocketAddress | undefined }>
  | CommandOf<
      K["destroyId"] | K["leaveGroup"] | K["queryRoute"] | K["disconnect"] | K["resolveRoute"] | K["getEvent"],
      object
    >
  | CommandOf<K["bindIp"], { address: SocketAddress | undefined }>
  | CommandOf<
      K["resolveIp"],
      { source: SocketAddress | undefined; destination: SocketAddress | undefined; timeoutMs: number }
    >
  | CommandOf<K["connect"], { parameters: ConnectionParameters }>
  | CommandOf<K["accept"], { uid: bigint; parameters: ConnectionParameters }>
  | CommandOf<K["listen"], { backlog: number }>
  | CommandOf<K["reject"], { reason: number; privateData: Buffer }>
  | CommandOf<K["initQpAttr"], { state: number }>
  | CommandOf<K["setOption"], { level: number; name: number; value: Buffer }>
  | CommandOf<K["notify"], { event: number }>
  | CommandOf<K["migrateId"], { from: bigint }>;

/** Least length of each command, with its header. */
const kLeast: Readonly<Record<number, number>> = {
  [kCommand.createId]: 32,
  [kCommand.destroyId]: 20,
  [kCommand.bindIp]: 48,
  [kCommand.resolveIp]: 72,
  [kCommand.resolveRoute]: 16,
  [kCommand.queryRoute]: 20,
  [kCommand.connect]: 284,
  [kCommand.listen]: 16,
  [kCommand.accept]: 292,
  [kCommand.reject]: 272,
  [kCommand.disconnect]: 12,
  [kCommand.initQpAttr]: 24,
  [kCommand.getEvent]: 16,
  [kCommand.setOption]: 32,
  [kCommand.notify]: 16,
  [kCommand.joinGroup]: 56,
  [kCommand.leaveGroup]: 20,
  [kCommand.migrateId]: 24,
};

/** Tells whether a command, whole or not, is known here. */
export function isKnown(bytes: Buffer): boolean {
  return bytes.length >= kHeader && kLeast[bytes.readUInt32LE(0)] !== undefined;
}

/**
 * Returns undefined if the command is cut short, contradicts itself, or is not known here.
 * @param extra Data that its addresses point to: the value of setOption; the key of the channel that migrateId takes an id from.
 */
export function readCommand(bytes: Buffer, extra: Buffer): Command | undefined {
  if (!isKnown(bytes)) return;
  const kind = bytes.readUInt32LE(0);
  if (bytes.length < (kLeast[kind] ?? 0)) return;
  switch (kind) {
    case kCommand.createId:
      return { kind, id: 0, uid: bytes.readBigUInt64LE(8), space: bytes.readUInt16LE(24) };
    case kCommand.joinGroup:
      return {
        kind,
        id: bytes.readUInt32LE(52),
        uid: bytes.readBigUInt64LE(16),
        address: readSocketAddress(bytes, 24),
      };
    case kCommand.destroyId:
    case kCommand.leaveGroup:
    case kCommand.queryRoute:
      return { kind, id: bytes.readUInt32LE(16) };
    case kCommand.bindIp:
      return { kind, id: bytes.readUInt32LE(44), address: readSocketAddress(bytes, 16) };
    case kCommand.resolveIp:
      return {
        kind,
        id: bytes.readUInt32LE(64),
        source: readSocketAddress(bytes, 8),
        destination: readSocketAddress(bytes, 36),
        timeoutMs: bytes.readUInt32LE(68),
      };
    case kCommand.disconnect:
    case kCommand.resolveRoute:
      return { kind, id: bytes.readUInt32LE(8) };
    case kCommand.connect: {
      const parameters = readParameters(bytes, 8);
      return parameters && { kind, id: bytes.readUInt32LE(280), parameters };
    }
    case kCommand.accept: {
      const parameters = readParameters(bytes, 16);
      return parameters && { kind, id: bytes.readUInt32LE(288), uid: bytes.readBigUInt64LE(8), parameters };
    }
    case kCommand.listen:
      return { kind, id: bytes.readUInt32LE(8), backlog: bytes.readInt32LE(12) };
    case kCommand.reject: {
      const privateData = Buffer.from(bytes.subarray(16, 16 + bytes.readUInt8(12)));
      return { kind, id: bytes.readUInt32LE(8), reason: bytes.readUInt8(13), privateData };
    }
    case kCommand.initQpAttr:
      return { kind, id: bytes.readUInt32LE(16), state: bytes.readUInt32LE(20) };
    case kCommand.getEvent:
      return { kind, id: 0 };
    case kCommand.setOption: {
      const [level, name, length] = [bytes.readUInt32LE(20), bytes.readUInt32LE(24), bytes.readUInt32LE(28)];
      if (length !== extra.length) return;
      return { kind, id: bytes.readUInt32LE(16), level, name, value: extra };
    }
    case kCommand.notify:
      return { kind, id: bytes.readUInt32LE(8), event: bytes.readUInt32LE(12) };
    case kCommand.migrateId:
      if (extra.length !== 8) return;
      return { kind, id: bytes.readUInt32LE(16), from: extra.readBigUInt64LE(0) };
    default:
      return;
  }
}

function readParameters(bytes: Buffer, at: number): ConnectionParameters | undefined {
  const length = bytes.readUInt8(at + 264);
  return {
    qpn: bytes.readUInt32LE(at),
    qkey: bytes.readUInt32LE(at + 4),
    privateData: Buffer.from(bytes.subarray(at + 8, at + 8 + length)),
    responderResources: bytes.readUInt8(at + 266),
    initiatorDepth: bytes.readUInt8(at + 267),
    retryCount: Math.min(bytes.readUInt8(at + 269), 7),
    rnrRetryCount: Math.min(bytes.readUInt8(at + 270), 7),
  };
}

/** Reads a sockaddr_in or sockaddr_in6; undefined: another family, or none. IPv4 in IPv6 is IPv4. */
function readSocketAddress(bytes: Buffer, at: number): SocketAddress | undefined {
  const family = bytes.readUInt16LE(at);
  const port = bytes.readUInt16BE(at + 2);
  if (family === kInet) return { address: addressText(bytes.subarray(at + 4, at + 8)), port };
  if (family === kInet6) return { address: addressOfGid(bytes.subarray(at + 8, at + 24)), port };
  return;
}

function writeSocketAddress(out: Buffer, at: number, { address, port }: SocketAddress): void {
  const bytes = addressBytes(address);
  const isIpv4 = bytes.length === 4;
  out.writeUInt16LE(isIpv4 ? kInet : kInet6, at);
  out.writeUInt16BE(port, at + 2);
  out.set(bytes, at + (isIpv4 ? 4 : 8));
}

/** An answer that is one number: an id, or how many events of an id the program has had. */
export function wordAnswer(word: number): Buffer {
  const answer = Buffer.alloc(4);
  answer.writeUInt32LE(word);
  return answer;
}

export interface Route {
  /** EUI-64 of the NIC. */
  guid: Buffer;
  source: SocketAddress | undefined;
  destination: SocketAddress | undefined;
  /** True if the route is known. */
  isResolved: boolean;
  /** Code of the path MTU, 1 to 5: 256 to 4096 bytes. */
  pathMtu: number;
  trafficClass: number;
}

/** The answer to queryRoute; without a source address it names no NIC. */
export function routeAnswer({ guid, source, destination, isResolved, pathMtu, trafficClass }: Route): Buffer {
  const answer = Buffer.alloc(208);
  if (source !== undefined) {
    guid.copy(answer, 0);
    const path = answer.subarray(8, 72);
    if (destination !== undefined) path.set(gidOfAddress(destination.address), 0);
    path.set(gidOfAddress(source.address), 16);
    path.writeUInt32LE(1, 44); // reversible
    path.writeUInt32LE(pathMtu, 48);
    path.writeUInt16BE(0xffff, 52); // partition key
    path.set([64, trafficClass, 1], 54); // hop limit, traffic class, number of paths
    path.set([kExactly, kExactly], 58);
    path.set([kExactly, kLifetime], 61);
    writeSocketAddress(answer, 136, source);
    answer.writeUInt8(1, 196); // port of the NIC
  }
  if (destination !== undefined) writeSocketAddress(answer, 164, destination);
  answer.writeUInt32LE(Number(isResolved), 192);
  answer.writeUInt32LE(0xffff_ffff, 200); // the device has no index
  return answer;
}
/** Selector of a path's MTU, rate and lifetime; the lifetime is that of Linux for RoCE, 268 ms. */
const kExactly = 2;
const kLifetime = 18;

/** The way to a peer, for ib_uverbs_ah_attr. */
export interface Way {
  address: string;
  /** Index of our own address in the table of GIDs. */
  sourceIndex: number;
  trafficClass: number;
  flowLabel: number;
}

function writeWay(out: Buffer, at: number, { address, sourceIndex, trafficClass, flowLabel }: Way): void {
  out.set(gidOfAddress(address), at);
  out.writeUInt32LE(flowLabel, at + 16);
  out.set([sourceIndex, 64, trafficClass], at + 20); // index of our GID, hop limit
  out.set([1, 1], at + 29); // It has a global route; port of the NIC.
}

/** IBV_QP_*: attributes that are given. */
export const kMask = {
  state: 1,
  access: 1 << 3,
  partition: 1 << 4,
  port: 1 << 5,
  qkey: 1 << 6,
  way: 1 << 7,
  pathMtu: 1 << 8,
  timeout: 1 << 9,
  retryCount: 1 << 10,
  rnrRetryCount: 1 << 11,
  receivePsn: 1 << 12,
  initiatorDepth: 1 << 13,
  rnrTimer: 1 << 15,
  sendPsn: 1 << 16,
  responderResources: 1 << 17,
  remoteQpn: 1 << 20,
} as const;

export interface QueuePairAttributes {
  state: number;
  access?: number;
  qkey?: number;
  way?: Way;
  /** Code of the path MTU, 1 to 5. */
  pathMtu?: number;
  timeout?: number;
  retryCount?: number;
  rnrRetryCount?: number;
  receivePsn?: number;
  sendPsn?: number;
  initiatorDepth?: number;
  responderResources?: number;
  rnrTimer?: number;
  remoteQpn?: number;
  /** Present for IBV_QPS_INIT: partition index 0, port 1. */
  partition?: true;
  port?: true;
}

/** The answer to initQpAttr: attributes that are given, and their mask. */
export function attributesAnswer(attributes: QueuePairAttributes): Buffer {
  const answer = Buffer.alloc(144);
  const given = Object.keys(attributes) as (keyof typeof kMask)[];
  answer.writeUInt32LE(
    given.reduce((mask, name) => mask | kMask[name], 0),
    0,
  );
  const { state, access = 0, qkey = 0, way, pathMtu = 0, receivePsn = 0, sendPsn = 0, remoteQpn = 0 } = attributes;
  [state, state, pathMtu, 0, qkey, receivePsn, sendPsn, remoteQpn, access].forEach((word, i) => {
    answer.writeUInt32LE(word, 4 + 4 * i);
  });
  if (way !== undefined) writeWay(answer, 40, way);
  const { initiatorDepth = 0, responderResources = 0, rnrTimer = 0 } = attributes;
  const { timeout = 0, retryCount = 0, rnrRetryCount = 0 } = attributes;
  answer.set([initiatorDepth, responderResources, rnrTimer, 1, timeout, retryCount, rnrRetryCount], 130);
  return answer;
}

export interface ConnectionEvent {
  event: number;
  /** Status: 0, a reason of IBTA's, or a negative errno. */
  status?: number;
  privateData?: Buffer;
  /** Queue pair of the peer, for connections. */
  qpn?: number;
  responderResources?: number;
  initiatorDepth?: number;
  retryCount?: number;
  rnrRetryCount?: number;
  /** Destination of datagrams. */
  datagram?: Way & { qpn: number; qkey: number };
}

/** The answer to getEvent. @param uid The program's name of the id or membership that `id` belongs to. */
export function eventAnswer(uid: bigint, id: number, event: ConnectionEvent, isDatagram: boolean): Buffer {
  const answer = Buffer.alloc(336);
  answer.writeBigUInt64LE(uid, 0);
  answer.writeUInt32LE(id, 8);
  answer.writeUInt32LE(event.event, 12);
  answer.writeInt32LE(event.status ?? 0, 16);
  const { privateData = Buffer.alloc(0), datagram } = event;
  const data = privateData.subarray(0, kPrivateData - 1);
  const parameters = answer.subarray(20);
  if (isDatagram) {
    if (datagram !== undefined) {
      parameters.writeUInt32LE(datagram.qpn, 0);
      parameters.writeUInt32LE(datagram.qkey, 4);
      writeWay(parameters, 8, datagram);
    }
    parameters.set(data, 40);
    parameters.writeUInt8(data.length, 296);
  } else {
    const { qpn = 0, responderResources = 0, initiatorDepth = 0, retryCount = 0, rnrRetryCount = 0 } = event;
    parameters.writeUInt32LE(qpn, 0);
    parameters.set(data, 8);
    parameters.set([data.length, 0, responderResources, initiatorDepth, 0, retryCount, rnrRetryCount], 264);
  }
  return answer;
}
