import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  formatLength,
  formatRate,
  formatSize,
  formatTime,
  parseFraction,
  parseLength,
  parseRate,
  parseSize,
  parseTime,
} from "../../src/base/units.js";

describe("units", () => {
  it.each([
    ["40Gbps", 40e9],
    ["40 Gb/s", 40e9],
    ["2.5 Gbit/s", 2.5e9],
    ["200kbps", 200e3],
    ["10 bit/s", 10],
    ["1Tbps", 1e12],
    ["1e3 Mbps", 1e9],
    ["0", 0],
  ])("rate %s", (text, expected) => expect(parseRate(text)).toBe(expected));

  it.each([
    ["22.4KB", 22_400],
    ["24.47KB", 24_470],
    ["1.875MB", 1_875_000],
    ["12 MB", 12_000_000],
    ["8kB", 8_000],
    ["1KiB", 1024],
    ["1.5 MiB", 1_572_864],
    ["1GiB", 2 ** 30],
    ["1500 B", 1500],
    ["1500 bytes", 1500],
    ["8 Mbit", 1_000_000],
  ])("size %s", (text, expected) => expect(parseSize(text)).toBe(expected));

  it.each([
    ["55us", 55_000],
    ["55µs", 55_000],
    ["55 μs", 55_000],
    ["1.5ms", 1_500_000],
    ["2s", 2e9],
    ["7ns", 7],
  ])("time %s", (text, expected) => expect(parseTime(text)).toBe(expected));

  it.each([
    ["100m", 100_000],
    ["1.5 km", 1_500_000],
    ["50cm", 500],
    ["3mm", 3],
  ])("length %s", (text, expected) => expect(parseLength(text)).toBe(expected));

  it("tells metres, milliseconds and megabytes apart", () => {
    expect(() => parseLength("3ms")).toThrow("3ms: unknown length unit; use mm, cm, m, km");
    expect(() => parseLength("3M")).toThrow("3M: unknown length unit; did you mean 3m?");
    expect(() => parseTime("3m")).toThrow("3m: unknown time unit; use ns, us, ms, s");
    expect(() => parseLength("0.5mm")).toThrow("0.5mm: not a whole number of mm");
  });

  it("reads plain numbers as the base unit", () => {
    expect(parseRate(40e9)).toBe(40e9);
    expect(parseSize(1500)).toBe(1500);
    expect(parseTime(1000)).toBe(1000);
  });

  it("reads fractions", () => {
    expect(parseFraction("1%")).toBe(0.01);
    expect(parseFraction("0.01")).toBe(0.01);
    expect(parseFraction(1)).toBe(1);
    expect(() => parseFraction(1.5)).toThrow("1.5: out of range; a fraction is between 0 and 1, or 0% and 100%");
    expect(() => parseFraction("-1%")).toThrow("out of range");
    expect(() => parseFraction(Number.NaN)).toThrow("out of range");
  });

  it.each([
    ["40Gbsp", "40Gbsp: unknown rate unit; use bit/s, kbps, Mbps, Gbps, Tbps"],
    ["40gbps", "40gbps: unknown rate unit; did you mean 40Gbps?"],
    ["40KB", "40KB: unknown rate unit; use bit/s, kbps, Mbps, Gbps, Tbps"],
    ["40", "40: no unit; use bit/s, kbps, Mbps, Gbps, Tbps"],
    ["-1Gbps", "-1Gbps: out of range; a rate is between 0 and 9010 Tb/s"],
    ["1e300Gbps", "1e300Gbps: out of range; a rate is between 0 and 9010 Tb/s"],
    ["0.5 bit/s", "0.5 bit/s: not a whole number of bit/s"],
    ["fast", "fast: not a rate; write a number and a unit, such as 40Gbps"],
    ["1 2Gbps", "1 2Gbps: not a rate; write a number and a unit, such as 40Gbps"],
    ["Infinity Gbps", "Infinity Gbps: not a rate; write a number and a unit, such as 40Gbps"],
    ["5constructor", "5constructor: unknown rate unit; use bit/s, kbps, Mbps, Gbps, Tbps"],
    ["", ": not a rate; write a number and a unit, such as 40Gbps"],
  ])("refuses the rate %j", (text, message) =>
    expect(() => parseRate(text)).toThrow(new RegExp(`^${escapeRegExp(message)}$`)),
  );

  it("refuses numbers that are not quantities", () => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, -1, 2 ** 54, 0.5]) {
      expect(() => parseTime(bad)).toThrow(/out of range|not a whole number/);
    }
  });

  it("formats in the largest unit", () => {
    expect(formatRate(40e9)).toBe("40 Gb/s");
    expect(formatSize(22_400)).toBe("22.4 KB");
    expect(formatTime(55_000)).toBe("55 us");
    expect(formatSize(0)).toBe("0 B");
    expect(formatRate(9.79123e9, 3)).toBe("9.79 Gb/s");
    // Times and rates that round up to the next unit get it, too.
    expect(formatTime(999_999_999, 4)).toBe("1 s");
    expect(formatRate(999.96e6, 4)).toBe("1 Gb/s");
    expect(formatTime(999_940, 4)).toBe("999.9 us");
  });

  it("reads back what it formats, exactly", () => {
    const amount = fc.oneof(
      fc.maxSafeNat(),
      fc.nat(10_000).map((n) => n * 1e6),
      fc.nat(1_000_000),
    );
    fc.assert(
      fc.property(amount, (value) => {
        expect(parseRate(formatRate(value))).toBe(value);
        expect(parseSize(formatSize(value))).toBe(value);
        expect(parseTime(formatTime(value))).toBe(value);
        expect(parseLength(formatLength(value))).toBe(value);
      }),
    );
  });

  it("returns a whole number in range or throws WeirError, whatever the text", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        for (const parse of [parseRate, parseSize, parseTime, parseLength]) {
          try {
            const value = parse(text);
            expect(Number.isSafeInteger(value) && value >= 0).toBe(true);
          } catch (error) {
            expect((error as Error).name).toBe("WeirError");
          }
        }
      }),
    );
  });
});

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
