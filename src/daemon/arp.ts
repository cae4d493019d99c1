/** Answers ARP requests (RFC 826) for the address of a soft NIC that the kernel does not have. */
const kEthernetArp = [0x00, 0x01, 0x08, 0x00, 0x06, 0x04] as const;
const kRequest = 1;
const kReply = 2;
const kLength = 42;

/** The answer to `frame`, or undefined if it is no request for `address`. `mac` is a 48-bit number. */
export function arpReply(frame: Uint8Array, address: string, mac: number): Uint8Array | undefined {
  const view = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
  if (view.length < kLength || view.readUInt16BE(12) !== 0x0806) return undefined;
  if (kEthernetArp.some((byte, i) => view[14 + i] !== byte) || view.readUInt16BE(20) !== kRequest) return undefined;
  const wanted = Buffer.from(address.split(".").map(Number));
  if (!view.subarray(38, 42).equals(wanted)) return undefined;
  const reply = Buffer.alloc(60);
  view.copy(reply, 0, 6, 12);
  reply.writeUIntBE(mac, 6, 6);
  view.copy(reply, 12, 12, 20);
  reply.writeUInt16BE(kReply, 20);
  reply.writeUIntBE(mac, 22, 6);
  wanted.copy(reply, 28);
  view.copy(reply, 32, 22, 32);
  return reply;
}
