/** Captures of other implementations. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The IPv4 packets of a little-endian pcap file of Ethernet frames. */
export function packets(name: string): Buffer[] {
  const file = readFileSync(fileURLToPath(new URL(`../fixtures/pcaps/${name}.pcap`, import.meta.url)));
  const found: Buffer[] = [];
  for (let at = 24; at < file.length; ) {
    const length = file.readUInt32LE(at + 8);
    const frame = file.subarray(at + 16, at + 16 + length);
    if (frame.readUInt16BE(12) === 0x0800) found.push(frame.subarray(14));
    at += 16 + length;
  }
  return found;
}
