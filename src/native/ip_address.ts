import { addressBytes } from "../wire/address.js";
import type { NativeIpAddress } from "./types.js";

/** An address as the core has it. @throws RangeError if it is none. */
export function nativeAddress(address: string): NativeIpAddress {
  const bytes = addressBytes(address);
  return { version: bytes.length === 16 ? 6 : 4, bytes };
}
