import { describe, expect, it } from "vitest";
import {
  decodeDestination,
  decodeFigures,
  decodeVersion,
  encodeDestination,
  encodeFigures,
  encodeInteger,
  encodeMtu,
  encodeVersion,
} from "../../../src/verbs/perf/messages.js";
import { gidOfAddress } from "../../../src/wire/address.js";

// Payloads of SENDs of ib_write_bw 4.5 -R between two Linux rxe.
const kVersion = "362e3036000000000000000000000000";
const kPage = "00001000";
const kMtu = "3300";
const kDestination =
  "00000000000000010000002400a6268e00001bf10000000000007f47abf8a00000000000000000000000ffff0a4d00020000000000000001";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

describe("perftest's messages", () => {
  it("are what perftest sends", () => {
    expect(hex(encodeVersion())).toBe(kVersion);
    expect(hex(encodeInteger(4096))).toBe(kPage);
    expect(hex(encodeMtu(1024))).toBe(kMtu);
    const end = {
      qpn: 0x24,
      rkey: 0x1bf1,
      address: 0x7f47abf8a000n,
      reads: 1,
      gid: gidOfAddress("10.77.0.2"),
    };
    // Only the PSN differs, which nobody uses.
    expect(hex(encodeDestination(end))).toBe(kDestination.replace("00a6268e", "00000000"));
    expect(decodeDestination(Buffer.from(kDestination, "hex"))).toEqual(end);
  });

  it("tells a version from what is none", () => {
    expect(decodeVersion(Buffer.from(kVersion, "hex"))).toBe(6.06);
    expect(decodeVersion(Buffer.from("26.01\0\0\0\0\0\0\0\0\0\0\0"))).toBe(26.01);
    expect(decodeVersion(Buffer.alloc(16))).toBeNaN();
    expect(decodeVersion(Buffer.from("6.06"))).toBeNaN();
  });

  it("carry the client's figures there and back", () => {
    const figures = { size: 65536, iterations: 5000, peak: 39.03, average: 33.1, messageRate: 0.00053 };
    const messages = encodeFigures(figures);
    expect(messages.map(({ length }) => length)).toEqual([8, 8, 8, 8, 8]);
    expect(hex(messages[0] as Uint8Array)).toBe("0000000000010000");
    expect(decodeFigures(messages)).toEqual(figures);
  });
});
