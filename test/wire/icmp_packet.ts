/** ICMP over IPv4 and IPv6, built apart from the product's code for it. */
import { addressBytes } from "../../src/wire/address.js";
import { internetChecksum } from "../../src/wire/checksum.js";

/** A packet as other hosts build it: by hand, with options if it is IPv4's. */
export function icmpPacket(from: string, to: string, message: Buffer, { options = 0, tos = 0 } = {}): Buffer {
  const [source, destination] = [addressBytes(from), addressBytes(to)];
  message.writeUInt16BE(0, 2);
  if (source.length === 4) {
    const packet = Buffer.concat([Buffer.alloc(20 + options), message]);
    packet.set([0x45 + options / 4, tos], 0);
    packet.writeUInt16BE(packet.length, 2);
    packet.set([17, 1], 8);
    packet.set(source, 12);
    packet.set(destination, 16);
    packet.fill(1, 20, 20 + options);
    packet.writeUInt16BE(internetChecksum(packet.subarray(0, 20 + options)), 10);
    packet.writeUInt16BE(internetChecksum(message), 20 + options + 2);
    return packet;
  }
  const packet = Buffer.concat([Buffer.alloc(40), message]);
  packet.writeUInt16BE(0x6000 | (tos << 4), 0);
  packet.writeUInt16BE(message.length, 4);
  packet.set([58, 64], 6);
  packet.set(source, 8);
  packet.set(destination, 24);
  const pseudo = Buffer.from([0, 0, message.length >> 8, message.length & 255, 0, 0, 0, 58]);
  packet.writeUInt16BE(internetChecksum(packet.subarray(8, 40), pseudo, message), 42);
  return packet;
}
