/** IP and Ethernet addresses: as text, as bytes, as the GIDs of RoCEv2. */
import { isIPv4, isIPv6 } from "node:net";

/** Most addresses of a NIC: as many as its table of GIDs has places for. */
export const kMostNicAddresses = 16;

const kMappedPrefix = Buffer.from("00000000000000000000ffff", "hex");

/** The 4 or 16 bytes of an IP address. @throws RangeError if `text` is none, or names a zone. */
export function addressBytes(text: string): Buffer {
  if (isIPv4(text)) return Buffer.from(text.split(".").map(Number));
  if (!isIPv6(text) || text.includes("%")) throw new RangeError(`${text} is not an IP address`);
  // The last 32 bits may be written as in IPv4 (RFC 4291, 2.2).
  const hex = text.replace(/\d+\.\d+\.\d+\.\d+$/, (tail) => {
    const bytes = addressBytes(tail);
    return `${bytes.readUInt16BE(0).toString(16)}:${bytes.readUInt16BE(2).toString(16)}`;
  });
  const [head = [], tail = []] = hex.split("::").map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(8 - head.length - tail.length).fill("0");
  return Buffer.from([...head, ...zeros, ...tail].map((group) => group.padStart(4, "0")).join(""), "hex");
}

/** The canonical text (RFC 5952) of 4 or 16 bytes. */
export function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  const view = Buffer.from(bytes);
  const groups = Array.from({ length: 8 }, (_, i) => view.readUInt16BE(i * 2).toString(16));
  // The first of the longest runs of at least two zero groups.
  let best = { at: 0, length: 1 };
  for (let at = 0; at < 8; at++) {
    let length = 0;
    while (groups[at + length] === "0") length++;
    if (length > best.length) best = { at, length };
    at += length;
  }
  if (best.length < 2) return groups.join(":");
  return `${groups.slice(0, best.at).join(":")}::${groups.slice(best.at + best.length).join(":")}`;
}

/** An address in the one spelling that `addressText` has for it. @throws RangeError if it is none. */
export function canonicalAddress(text: string): string {
  return addressText(addressBytes(text));
}

/** The GID of an address (IBTA annex A17): IPv6 as it is, IPv4 as ::ffff:a.b.c.d. */
export function gidOfAddress(address: string): Buffer {
  const bytes = addressBytes(address);
  return bytes.length === 16 ? bytes : Buffer.concat([kMappedPrefix, bytes]);
}

export function addressOfGid(gid: Uint8Array): string {
  return addressText(kMappedPrefix.equals(gid.subarray(0, 12)) ? gid.subarray(12) : gid);
}

/** The 6 bytes of a 48-bit MAC address. */
export function macBytes(mac: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUIntBE(mac, 0, 6);
  return bytes;
}

/** A 48-bit MAC address as the modified EUI-64 (RFC 4291, appendix A) that names the channel adapter. */
export function guidOfMac(mac: number): Buffer {
  const [first = 0, ...rest] = macBytes(mac);
  return Buffer.from([first ^ 0x02, ...rest.slice(0, 2), 0xff, 0xfe, ...rest.slice(2)]);
}

/** Tells whether an IP address, canonical, is a multicast group's: of 224.0.0.0/4 or ff00::/8. */
export function isGroup(address: string): boolean {
  const [first = 0] = addressBytes(address);
  return address.includes(":") ? first === 0xff : first >> 4 === 0xe;
}

/** MAC address of frames to a multicast group: 01:00:5e and 23 bits of it (RFC 1112, 6.4), or 33:33 and 32 (RFC 2464, 7). */
export function macOfGroup(group: string): number {
  const bytes = addressBytes(group);
  if (bytes.length === 4) return 0x01_00_5e_00_00_00 + (bytes.readUInt32BE() & 0x7f_ffff);
  return 0x3333_0000_0000 + bytes.readUInt32BE(12);
}

/** Tells whether a 48-bit MAC address may be one station's: not zero, no group. */
export function isStation(mac: number): boolean {
  return mac !== 0 && Math.floor(mac / 2 ** 40) % 2 === 0;
}
