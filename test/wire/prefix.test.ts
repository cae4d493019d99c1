/** Addresses with prefix lengths. */
import { describe, expect, it } from "vitest";
import { inPrefix, parsePrefix } from "../../src/wire/prefix.js";

describe("parsePrefix", () => {
  it.each([
    ["10.0.0.5/24", "10.0.0.5", 24],
    ["10.0.0.5/0", "10.0.0.5", 0],
    ["10.0.0.5/32", "10.0.0.5", 32],
    ["10.0.0.5", "10.0.0.5", 32],
    ["fd00:0:0::0005/64", "fd00::5", 64],
    ["FE80::1/128", "fe80::1", 128],
    ["::1", "::1", 128],
  ])("%s", (text, address, length) => {
    expect(parsePrefix(text)).toEqual({ address, length });
  });

  it.each([
    "",
    "/24",
    "10.0.0/24",
    "10.0.0.5/33",
    "10.0.0.5/",
    "10.0.0.5/-1",
    "10.0.0.5/8/8",
    "fd00::5/129",
    "host/24",
  ])("refuses %o", (text) => {
    expect(() => parsePrefix(text)).toThrow(`address: ${text} is not an IP address with a prefix length`);
  });
});

describe("inPrefix", () => {
  it.each([
    ["10.0.0.5/24", "10.0.0.255", true],
    ["10.0.0.5/24", "10.0.1.5", false],
    ["10.0.0.5/23", "10.0.1.5", true],
    ["10.128.0.0/9", "10.127.255.255", false],
    ["10.128.0.0/9", "10.128.0.1", true],
    ["10.0.0.5/0", "255.255.255.255", true],
    ["10.0.0.5/32", "10.0.0.5", true],
    ["10.0.0.5/32", "10.0.0.4", false],
    ["fd00::5/64", "fd00::ffff:0:0:1", true],
    ["fd00::5/64", "fd00:0:0:1::1", false],
    ["fd00::5/127", "fd00::4", true],
    ["fd00::5/127", "fd00::6", false],
    ["0.0.0.0/0", "::1", false],
    ["::/0", "10.0.0.1", false],
  ])("%s and %s: %s", (prefix, address, expected) => {
    expect(inPrefix(parsePrefix(prefix), address)).toBe(expected);
  });
});
