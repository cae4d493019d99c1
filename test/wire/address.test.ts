import { SocketAddress } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  addressBytes,
  addressOfGid,
  addressText,
  canonicalAddress,
  gidOfAddress,
  guidOfMac,
  isGroup,
  isStation,
  macOfGroup,
} from "../../src/wire/address.js";

describe("addresses", () => {
  it.each([
    ["10.77.0.1", "0a4d0001"],
    ["::", "00000000000000000000000000000000"],
    ["::1", "00000000000000000000000000000001"],
    ["fd77::1", "fd770000000000000000000000000001"],
    ["fd77::", "fd770000000000000000000000000000"],
    ["2001:db8:0:1:1:1:1:1", "20010db8000000010001000100010001"],
    ["2001:0:0:1::1", "20010000000000010000000000000001"],
    ["fe80::12:0:0:1", "fe800000000000000012000000000001"],
  ])("%s is %s", (text, hex) => {
    expect(addressBytes(text).toString("hex")).toBe(hex);
    expect(addressText(Buffer.from(hex, "hex"))).toBe(text);
  });

  it("have one spelling", () => {
    expect(canonicalAddress("FD77:0:0:0:0:0:0:0001")).toBe("fd77::1");
    expect(canonicalAddress("::ffff:10.1.2.3")).toBe("::ffff:a01:203");
  });

  it("are read and written as Node does it", () => {
    const group = fc.constantFrom(0, 0, 0, 1, 0xa0, 0xffff);
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
        const text = groups.map((value) => value.toString(16)).join(":");
        // inet_ntop writes some addresses with dots at their end.
        const { address } = new SocketAddress({ address: text, family: "ipv6" });
        expect(addressBytes(address)).toEqual(addressBytes(text));
        if (!address.includes(".")) expect(canonicalAddress(text)).toBe(address);
      }),
    );
  });

  it.each(["", "10.0.0", "10.0.0.256", "fd77::1::2", "fe80::1%eth0", "host"])("refuses %j", (text) => {
    expect(() => addressBytes(text)).toThrow(RangeError);
  });

  it("are GIDs", () => {
    expect(gidOfAddress("10.77.0.2").toString("hex")).toBe("00000000000000000000ffff0a4d0002");
    expect(addressOfGid(gidOfAddress("10.77.0.2"))).toBe("10.77.0.2");
    expect(addressOfGid(gidOfAddress("fd77::2"))).toBe("fd77::2");
  });
});

describe("multicast groups", () => {
  it("are told from other addresses", () => {
    expect(["224.0.0.0", "239.255.255.255", "ff02::1", "ff0e::4242"].every(isGroup)).toBe(true);
    expect(["223.255.255.255", "240.0.0.0", "10.0.0.1", "fe80::1", "::1"].some(isGroup)).toBe(false);
  });

  it("have the MAC address that RFC 1112 and RFC 2464 make of them", () => {
    expect(macOfGroup("224.0.0.1")).toBe(0x01005e000001);
    expect(macOfGroup("239.129.2.3")).toBe(0x01005e010203);
    expect(macOfGroup("ff02::1:ff00:8001")).toBe(0x3333ff008001);
  });
});

describe("MAC addresses", () => {
  it("name channel adapters", () => {
    expect(guidOfMac(0x52540a4d0002).toString("hex")).toBe("50540afffe4d0002");
  });

  it("are stations unless they are zero or a group", () => {
    expect([0, 0xffff_ffff_ffff, 0x3333_0000_0001, 0x0100_5e00_0001].some(isStation)).toBe(false);
    expect([1, 0x52540a4d0002].every(isStation)).toBe(true);
  });
});
