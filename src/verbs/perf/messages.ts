/**
 * Messages of perftest's two ends on the control connection (perftest 4.5, which calls its protocol 6.06): one datum per message,
 * big endian, with no header. Source: perftest_communication.c.
 */

/** Version that we tell: ends newer than 6.28 negotiate more, unless the other one is older. */
export const kVersion = "6.06";
const kVersionBytes = 16;

/** Bytes of `struct pingpong_dest`, the longest message. */
export const kDestinationBytes = 56;
/** Bytes of one figure of a report. */
export const kFigureBytes = 8;

/** A queue pair and the memory that its peer may read or write. */
export interface Destination {
  qpn: number;
  rkey: number;
  address: bigint;
  /** RDMA READs that may be outstanding. */
  reads: number;
  /** 16 bytes; IPv4 is mapped. */
  gid: Uint8Array;
}

export function encodeVersion(): Uint8Array {
  return Buffer.from(kVersion.padEnd(kVersionBytes, "\0"), "latin1");
}

/** A version as a number, as perftest compares it; NaN if the message is none. */
export function decodeVersion(message: Uint8Array): number {
  return message.length === kVersionBytes ? Number.parseFloat(Buffer.from(message).toString("latin1")) : Number.NaN;
}

export function encodeInteger(value: number): Uint8Array {
  const message = Buffer.alloc(4);
  message.writeInt32BE(value);
  return message;
}

/** `enum ibv_mtu` as a digit: 1 for 256, 5 for 4096. */
export function encodeMtu(mtu: number): Uint8Array {
  return Buffer.from(`${Math.log2(mtu) - 7}\0`, "latin1");
}

export function encodeDestination({ qpn, rkey, address, reads, gid }: Destination): Uint8Array {
  const message = Buffer.alloc(kDestinationBytes);
  message.writeInt32BE(reads, 4);
  message.writeInt32BE(qpn, 8);
  message.writeUInt32BE(rkey, 16);
  message.writeBigUInt64BE(address, 24);
  message.set(gid, 32);
  message.writeInt32BE(1, 52); // index of the GID
  return message;
}

/** Decodes a `message` of kDestinationBytes. */
export function decodeDestination(message: Uint8Array): Destination {
  const view = Buffer.from(message);
  return {
    reads: view.readInt32BE(4),
    qpn: view.readInt32BE(8),
    rkey: view.readUInt32BE(16),
    address: view.readBigUInt64BE(24),
    gid: view.subarray(32, 48),
  };
}

/** Figures that the client tells the server in the end; rates in the client's unit (MiB/s or Gb/s) and in million messages/s. */
export interface Figures {
  size: number;
  iterations: number;
  peak: number;
  average: number;
  messageRate: number;
}

/** Returns five messages, in this order. */
export function encodeFigures({ size, iterations, peak, average, messageRate }: Figures): Uint8Array[] {
  const integer = (value: number) => {
    const message = Buffer.alloc(kFigureBytes);
    message.writeBigUInt64BE(BigInt(value));
    return message;
  };
  const real = (value: number) => {
    const message = Buffer.alloc(kFigureBytes);
    message.writeDoubleBE(value);
    return message;
  };
  return [integer(size), integer(iterations), real(peak), real(average), real(messageRate)];
}

/** Decodes five `messages` of kFigureBytes. */
export function decodeFigures(messages: readonly Uint8Array[]): Figures {
  const view = Buffer.concat(messages);
  return {
    size: Number(view.readBigUInt64BE(0)),
    iterations: Number(view.readBigUInt64BE(8)),
    peak: view.readDoubleBE(16),
    average: view.readDoubleBE(24),
    messageRate: view.readDoubleBE(32),
  };
}
