/** An address with the length of its network's prefix: "10.0.0.5/24". */
import { isIP } from "node:net";
import { WeirError } from "../base/error.js";
import { addressBytes, addressText, canonicalAddress } from "./address.js";

export interface Prefix {
  address: string;
  /** Bits that all addresses of the link share. */
  length: number;
}

/** @throws WeirError if `text` is no address with a prefix length. */
export function parsePrefix(text: string): Prefix {
  const [, address = "", length] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  const most = version === 6 ? 128 : 32;
  if (version === 0 || (length !== undefined && Number(length) > most)) {
    throw new WeirError(`address: ${text} is not an IP address with a prefix length`, {
      field: "address",
      hint: "such as 10.0.0.5/24 or fd00::5/64",
    });
  }
  return { address: canonicalAddress(address), length: length === undefined ? most : Number(length) };
}

/** Tells whether `address`, of either IP version, is in the network. */
export function inPrefix({ address, length }: Prefix, other: string): boolean {
  const [own, theirs] = [addressBytes(address), addressBytes(other)];
  if (own.length !== theirs.length) return false;
  return own.every((byte, i) => {
    const bits = Math.min(8, Math.max(0, length - 8 * i));
    return (byte ^ (theirs[i] as number)) >> (8 - bits) === 0;
  });
}

/** How many leading bits two addresses of one IP version have in common. */
export function commonBits(one: string, other: string): number {
  const [a, b] = [addressBytes(one), addressBytes(other)];
  const first = a.findIndex((byte, i) => byte !== b[i]);
  return first < 0 ? 8 * a.length : 8 * first + Math.clz32((a[first] as number) ^ (b[first] as number)) - 24;
}

/** Returns undefined if the text is no address, or has no length. */
export function readPrefix(text: string): Prefix | undefined {
  const [address = "", length = ""] = text.split("/");
  if (isIP(address) === 0 || address.includes("%") || length === "") return undefined;
  try {
    return parsePrefix(text);
  } catch {
    return undefined;
  }
}

export const prefixText = ({ address, length }: Prefix) => `${address}/${length}`;

/** First address of the network. */
export function networkOf({ address, length }: Prefix): string {
  const bits = (i: number) => Math.min(8, Math.max(0, length - 8 * i));
  return addressText(addressBytes(address).map((byte, i) => byte & (0xff00 >> bits(i))));
}
