/**
 * The messages of communication management: IBTA volume 1, 12.6 (connections) and 12.11 (service ID resolution), and annex A11,
 * the header with IP addresses that the RDMA CM puts before an application's private data. Times are codes: 4.096 us x 2^code.
 */
import { addressBytes, addressText } from "../address.js";
import { bits, bytes, type Field, kMadHeader, newMad, readMadHeader, uint64 } from "./mad.js";

/** A path in a REQ; `at` is 52 for the primary path, 96 for the alternate one. */
const path = (at: number) =>
  ({
    localLid: bits(at, 0, 16),
    remoteLid: bits(at + 2, 0, 16),
    localGid: bytes(at + 4, 16),
    remoteGid: bytes(at + 20, 16),
    flowLabel: bits(at + 36, 0, 20),
    packetRate: bits(at + 39, 2, 6),
    trafficClass: bits(at + 40, 0, 8),
    hopLimit: bits(at + 41, 0, 8),
    serviceLevel: bits(at + 42, 0, 4),
    subnetLocal: bits(at + 42, 4, 1),
    localAckTimeout: bits(at + 43, 0, 5),
  }) as const;

const kLocalId = bits(0, 0, 32);
const kRemoteId = bits(4, 0, 32);

/** Fields by name, attribute IDs beside them. Bits that are not listed are reserved, zero in what we send. */
const kMessages = {
  REQ: {
    attribute: 0x10,
    fields: {
      localId: kLocalId,
      vendorId: bits(4, 0, 24),
      serviceId: uint64(8),
      localGuid: bytes(16, 8),
      localQkey: bits(28, 0, 32),
      localQpn: bits(32, 0, 24),
      responderResources: bits(35, 0, 8),
      localEecn: bits(36, 0, 24),
      initiatorDepth: bits(39, 0, 8),
      remoteEecn: bits(40, 0, 24),
      remoteResponseTimeout: bits(43, 0, 5),
      /** 0 is RC. */
      transportService: bits(43, 5, 2),
      flowControl: bits(43, 7, 1),
      startingPsn: bits(44, 0, 24),
      localResponseTimeout: bits(47, 0, 5),
      retryCount: bits(47, 5, 3),
      partition: bits(48, 0, 16),
      /** 1 to 5: 256 to 4096. */
      pathMtu: bits(50, 0, 4),
      rdcExists: bits(50, 4, 1),
      rnrRetryCount: bits(50, 5, 3),
      maxRetries: bits(51, 0, 4),
      sharedReceiveQueue: bits(51, 4, 1),
      extendedTransport: bits(51, 5, 3),
      ...path(52),
      alternatePath: bytes(96, 44),
      privateData: bytes(140, 92),
    },
  },
  MRA: {
    attribute: 0x11,
    fields: {
      localId: kLocalId,
      remoteId: kRemoteId,
      answered: bits(8, 0, 2),
      serviceTimeout: bits(9, 0, 5),
      privateData: bytes(10, 222),
    },
  },
  REJ: {
    attribute: 0x12,
    fields: {
      localId: kLocalId,
      remoteId: kRemoteId,
      answered: bits(8, 0, 2),
      infoLength: bits(9, 0, 7),
      reason: bits(10, 0, 16),
      info: bytes(12, 72),
      privateData: bytes(84, 148),
    },
  },
  REP: {
    attribute: 0x13,
    fields: {
      localId: kLocalId,
      remoteId: kRemoteId,
      localQkey: bits(8, 0, 32),
      localQpn: bits(12, 0, 24),
      localEecn: bits(16, 0, 24),
      startingPsn: bits(20, 0, 24),
      responderResources: bits(24, 0, 8),
      initiatorDepth: bits(25, 0, 8),
      targetAckDelay: bits(26, 0, 5),
      failoverAccepted: bits(26, 5, 2),
      flowControl: bits(26, 7, 1),
      rnrRetryCount: bits(27, 0, 3),
      sharedReceiveQueue: bits(27, 3, 1),
      localGuid: bytes(28, 8),
      privateData: bytes(36, 196),
    },
  },
  RTU: { attribute: 0x14, fields: { localId: kLocalId, remoteId: kRemoteId, privateData: bytes(8, 224) } },
  DREQ: {
    attribute: 0x15,
    fields: { localId: kLocalId, remoteId: kRemoteId, remoteQpn: bits(8, 0, 24), privateData: bytes(12, 220) },
  },
  DREP: { attribute: 0x16, fields: { localId: kLocalId, remoteId: kRemoteId, privateData: bytes(8, 224) } },
  SIDR_REQ: {
    attribute: 0x17,
    fields: {
      requestId: bits(0, 0, 32),
      partition: bits(4, 0, 16),
      serviceId: uint64(8),
      privateData: bytes(16, 216),
    },
  },
  SIDR_REP: {
    attribute: 0x18,
    fields: {
      requestId: bits(0, 0, 32),
      status: bits(4, 0, 8),
      infoLength: bits(5, 0, 8),
      qpn: bits(8, 0, 24),
      serviceId: uint64(12),
      qkey: bits(20, 0, 32),
      info: bytes(24, 72),
      privateData: bytes(96, 136),
    },
  },
} as const;

export type MessageKind = keyof typeof kMessages;
type Values<T> = { [Name in keyof T]: T[Name] extends Field<infer Value> ? Value : never };
export type Fields<K extends MessageKind> = Values<(typeof kMessages)[K]["fields"]>;
/** One message with all its fields; `kind` tells which. */
export type Message<K extends MessageKind = MessageKind> = {
  [Kind in K]: { kind: Kind; transaction: bigint; modifier: number; fields: Fields<Kind> };
}[K];

/** Values by which REJ and MRA say which message they answer. */
export const kAnswered = { REQ: 0, REP: 1 } as const;
/** MTU codes: 256 x 2^(code - 1) bytes. */
export const kPathMtus = [256, 512, 1024, 2048, 4096] as const;
export type PathMtu = (typeof kPathMtus)[number];

/** A MAD; fields that are not given are zero. @throws RangeError when a value does not fit its field. */
export function buildMessage<K extends MessageKind>(
  kind: K,
  transaction: bigint,
  fields: Partial<Fields<K>>,
  modifier = 0,
): Buffer {
  const { attribute, fields: table } = kMessages[kind];
  const mad = newMad({ transaction, attribute, modifier });
  const data = mad.subarray(kMadHeader);
  for (const [name, value] of Object.entries(fields)) {
    (table as unknown as Record<string, Field<never>>)[name]?.write(data, value as never);
  }
  return mad;
}

/** Returns undefined if `mad` is no message that is known here. */
export function readMessage(mad: Buffer): Message | undefined {
  const header = readMadHeader(mad);
  if (header === undefined) return;
  for (const [kind, { attribute, fields: table }] of Object.entries(kMessages)) {
    if (attribute !== header.attribute) continue;
    const data = mad.subarray(kMadHeader);
    const fields = Object.fromEntries(
      Object.entries<Field<number | bigint | Buffer>>(table).map(([name, field]) => [name, field.read(data)]),
    );
    return { kind, transaction: header.transaction, modifier: header.modifier, fields } as Message;
  }
  return;
}

/** Service IDs of the RDMA CM: the port space (RDMA_PS_TCP, RDMA_PS_UDP) above the port. */
const kPortSpace = { connected: 0x0106, datagram: 0x0111 } as const;
type PortSpace = keyof typeof kPortSpace;

export function serviceId(space: PortSpace, port: number): bigint {
  return (BigInt(kPortSpace[space]) << 16n) | BigInt(port);
}

/** Returns undefined if the service is no port of that space. */
export function portOfService(space: PortSpace, id: bigint): number | undefined {
  return id >> 16n === BigInt(kPortSpace[space]) ? Number(id & 0xffffn) : undefined;
}

/** Header of annex A11, before the application's own private data of REQ and SIDR_REQ. */
export interface IpHeader {
  sourcePort: number;
  source: string;
  destination: string;
}

const kIpHeader = 36;
/** Private data that an application may send, bytes: the room in the message less the annex's header. */
export const kPrivateData = {
  REQ: 92 - kIpHeader,
  REP: 196,
  REJ: 148,
  SIDR_REQ: 216 - kIpHeader,
  SIDR_REP: 136,
} as const;

/** The header with `privateData` behind it. */
export function buildIpHeader({ sourcePort, source, destination }: IpHeader, privateData: Uint8Array): Buffer {
  const header = Buffer.alloc(kIpHeader);
  const addresses = [addressBytes(source), addressBytes(destination)] as const;
  header.writeUInt8(addresses[0].length === 4 ? 0x40 : 0x60, 1); // byte 0: major and minor version 0
  header.writeUInt16BE(sourcePort, 2);
  header.set(addresses[0], 20 - addresses[0].length);
  header.set(addresses[1], kIpHeader - addresses[1].length);
  return Buffer.concat([header, privateData]);
}

/** Returns undefined if the versions are not known. */
export function readIpHeader(privateData: Buffer): (IpHeader & { privateData: Buffer }) | undefined {
  const version = privateData.readUInt8(1) >> 4;
  if (privateData.readUInt8(0) !== 0 || (version !== 4 && version !== 6)) return;
  const length = version === 4 ? 4 : 16;
  return {
    sourcePort: privateData.readUInt16BE(2),
    source: addressText(privateData.subarray(20 - length, 20)),
    destination: addressText(privateData.subarray(kIpHeader - length, kIpHeader)),
    privateData: privateData.subarray(kIpHeader),
  };
}
