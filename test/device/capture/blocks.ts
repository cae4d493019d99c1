/** Packet blocks as captures have them, written another way than src/device/capture/packet_blocks.ts does. */
export interface PacketFields {
  interface: number;
  /** ns since the epoch. */
  time: bigint;
  bytes: Uint8Array;
  /** Bytes on the wire, if not all are here. */
  original?: number;
  /** 1 in, 2 out. */
  direction?: number;
  comment?: string;
}

const padded = (length: number) => Math.ceil(length / 4) * 4;

export function packetBlock({
  interface: number,
  time,
  bytes,
  original,
  direction,
  comment = "",
}: PacketFields): Buffer {
  const options: Buffer[] = [];
  const option = (code: number, value: Buffer) => {
    const head = Buffer.alloc(4);
    head.writeUInt16LE(code, 0);
    head.writeUInt16LE(value.length, 2);
    options.push(head, value, Buffer.alloc(-value.length & 3));
  };
  if (direction !== undefined) option(2, Buffer.from([direction, 0, 0, 0]));
  if (comment !== "") option(1, Buffer.from(comment));
  if (options.length > 0) option(0, Buffer.alloc(0));
  const tail = Buffer.concat(options);
  const block = Buffer.alloc(32 + padded(bytes.length) + tail.length);
  block.writeUInt32LE(6, 0);
  block.writeUInt32LE(block.length, 4);
  block.writeUInt32LE(number, 8);
  block.writeUInt32LE(Number(time >> 32n), 12);
  block.writeUInt32LE(Number(time & 0xffff_ffffn), 16);
  block.writeUInt32LE(bytes.length, 20);
  block.writeUInt32LE(original ?? bytes.length, 24);
  block.set(bytes, 28);
  block.set(tail, 28 + padded(bytes.length));
  block.writeUInt32LE(block.length, block.length - 4);
  return block;
}
