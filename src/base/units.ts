// The one place where units are read and written. Base units: rates bit/s, sizes bytes, times nanoseconds, lengths millimetres,
// all whole numbers up to 2^53; fractions 0..1. Prefixes are decimal (1 KB = 1000 B, 1 Gb/s = 10^9 bit/s), KiB, MiB, GiB binary.
import unitmath from "unitmath/dist/UnitMath.js";
import { WeirError } from "./error.js";

const unit = unitmath.config({
  definitions: {
    skipBuiltIns: true,
    baseQuantities: ["RATE", "SIZE", "FRACTION"],
    prefixes: {
      NONE: { "": 1 },
      RATE: { "": 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12 },
      SIZE: { "": 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 },
      BITS: { "": 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12 },
      TIME: { "": 1e9, m: 1e6, u: 1e3, n: 1 },
      LENGTH: { k: 1e6, "": 1e3, c: 10, m: 1 },
    },
    // The value of a second is 1 with the prefix table in nanoseconds, so that decimal times convert without rounding.
    units: {
      bps: { quantity: "RATE", prefixes: "RATE", value: 1, aliases: ["bitps"] },
      B: { quantity: "SIZE", prefixes: "SIZE", value: 1 },
      byte: { quantity: "SIZE", value: 1, aliases: ["bytes"] },
      bit: { value: "0.125 B", prefixes: "BITS", aliases: ["bits"] },
      s: { quantity: "TIME", prefixes: "TIME", value: 1 },
      m: { quantity: "LENGTH", prefixes: "LENGTH", value: 1 },
      percent: { quantity: "FRACTION", value: 0.01 },
      fraction: { quantity: "FRACTION", value: 1 },
    },
    unitSystems: { auto: {}, si: {} },
  },
});

interface Kind {
  name: string;
  base: string;
  /** What the unit store calls the base unit. */
  baseUnit: string;
  /** Offered when the unit is unknown; also the units that the formatter picks from, largest first. */
  units: string;
  steps: readonly (readonly [name: string, value: number])[];
  example: string;
}

const RATE: Kind = {
  name: "rate",
  base: "bit/s",
  baseUnit: "bps",
  units: "bit/s, kbps, Mbps, Gbps, Tbps",
  steps: [
    ["Tb/s", 1e12],
    ["Gb/s", 1e9],
    ["Mb/s", 1e6],
    ["kb/s", 1e3],
    ["bit/s", 1],
  ],
  example: "40Gbps",
};
const SIZE: Kind = {
  name: "size",
  base: "bytes",
  baseUnit: "B",
  units: "B, KB, MB, GB, KiB, MiB, GiB, bit, kbit, Mbit, Gbit",
  steps: [
    ["GB", 1e9],
    ["MB", 1e6],
    ["KB", 1e3],
    ["B", 1],
  ],
  example: "12MB",
};
const TIME: Kind = {
  name: "time",
  base: "ns",
  baseUnit: "ns",
  units: "ns, us, ms, s",
  steps: [
    ["s", 1e9],
    ["ms", 1e6],
    ["us", 1e3],
    ["ns", 1],
  ],
  example: "55us",
};
const LENGTH: Kind = {
  name: "length",
  base: "mm",
  baseUnit: "mm",
  units: "mm, cm, m, km",
  steps: [
    ["km", 1e6],
    ["m", 1e3],
    ["mm", 1],
  ],
  example: "100m",
};

const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-zµμ%/]*)$/;
const LONGEST = 64;

/** Unit names as written -> as the unit store knows them: µ is u, `/s` is `ps`, % is a word. */
function storeName(name: string): string {
  return name.replace(/^[µμ]/, "u").replace(/\/s$/, "ps").replace(/^%$/, "percent");
}

function toBase(amount: number, name: string, kind: Kind): number | undefined {
  try {
    return unit(amount, storeName(name)).to(kind.baseUnit).value;
  } catch {
    return undefined;
  }
}

function shown(input: unknown): string {
  const text = typeof input === "string" ? input : String(input);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}...` : text;
}

function split(input: string, example: string, what: string): [number, string] {
  const match = input.length > LONGEST ? null : QUANTITY.exec(input.trim());
  if (match === null)
    throw new WeirError(`${shown(input)}: not a ${what}; write a number and a unit, such as ${example}`);
  return [Number(match[1]), match[2] ?? ""];
}

/** The same name in another case, if that one is a unit: `gbps` -> `Gbps`. */
function otherCase(name: string, kind: Kind): string | undefined {
  const wanted = storeName(name).toLowerCase();
  return kind.units.split(", ").find((candidate) => storeName(candidate).toLowerCase() === wanted);
}

function whole(value: number, input: unknown, kind: Kind): number {
  const limit = Number.MAX_SAFE_INTEGER;
  if (!Number.isFinite(value) || value < 0 || value > limit) {
    throw new WeirError(`${shown(input)}: out of range; a ${kind.name} is between 0 and ${format(limit, kind, 3)}`);
  }
  const rounded = Math.round(value);
  // Decimal fractions are not exact in binary, so 22.4 KB may come out a hair away from 22400.
  if (Math.abs(value - rounded) > Math.max(1e-6, value * 1e-12)) {
    throw new WeirError(`${shown(input)}: not a whole number of ${kind.base}`);
  }
  return rounded;
}

function parse(input: string | number, kind: Kind): number {
  if (typeof input === "number") return whole(input, input, kind);
  const [amount, name] = split(input, kind.example, kind.name);
  if (name === "") {
    if (amount === 0) return 0;
    throw new WeirError(`${shown(input)}: no unit; use ${kind.units}`);
  }
  const value = toBase(amount, name, kind);
  if (value === undefined) {
    const meant = otherCase(name, kind);
    const remedy = meant === undefined ? `use ${kind.units}` : `did you mean ${amount}${meant}?`;
    throw new WeirError(`${shown(input)}: unknown ${kind.name} unit; ${remedy}`);
  }
  return whole(value, input, kind);
}

/** Bits per second from `40Gbps`, `40 Gb/s`, or a number of bit/s. Throws WeirError. */
export function parseRate(input: string | number): number {
  return parse(input, RATE);
}

/** Bytes from `22.4KB`, `12 MB`, `1MiB`, `8 Mbit`, or a number of bytes. Throws WeirError. */
export function parseSize(input: string | number): number {
  return parse(input, SIZE);
}

/** Whole nanoseconds from `55us`, `1.5 ms`, or a number of nanoseconds. Throws WeirError. */
export function parseTime(input: string | number): number {
  return parse(input, TIME);
}

/** Whole millimetres from `100m`, `2 km`, or a number of millimetres. Throws WeirError. */
export function parseLength(input: string | number): number {
  return parse(input, LENGTH);
}

/** A fraction 0..1 from `1%`, `0.01` or 0.01. Throws WeirError. */
export function parseFraction(input: string | number): number {
  const [amount, name] = typeof input === "number" ? [input, ""] : split(input, "1%", "fraction");
  if (name !== "" && name !== "%" && name !== "percent") {
    throw new WeirError(`${shown(input)}: unknown fraction unit; use % or a number between 0 and 1`);
  }
  const value = name === "" ? amount : unit(amount, "percent").to("fraction").value;
  if (!(value >= 0 && value <= 1)) {
    throw new WeirError(`${shown(input)}: out of range; a fraction is between 0 and 1, or 0% and 100%`);
  }
  return value;
}

function format(value: number, kind: Kind, digits?: number): string {
  // What rounding makes larger may be one of the next unit.
  const magnitude = Math.abs(digits === undefined ? value : Number(value.toPrecision(digits)));
  for (const [name, step] of kind.steps) {
    if (magnitude < step && step !== 1) continue;
    const scaled = value / step;
    const amount = digits === undefined ? scaled : Number(scaled.toPrecision(digits));
    const text = String(amount);
    // Without `digits` the text must read back as the same number, so a unit that loses bits is skipped.
    if (digits !== undefined || step === 1 || Math.round(Number(text) * step) === value) return `${text} ${name}`;
  }
  return `${value} ${kind.base}`;
}

/** `formatRate(40e9)` -> "40 Gb/s"; `digits` rounds to that many significant digits, without it the text is exact. */
export function formatRate(bitsPerSecond: number, digits?: number): string {
  return format(bitsPerSecond, RATE, digits);
}

/** `formatSize(22400)` -> "22.4 KB" (1 KB = 1000 B); `digits` as in formatRate. */
export function formatSize(bytes: number, digits?: number): string {
  return format(bytes, SIZE, digits);
}

/** `formatTime(55000)` -> "55 us"; `digits` as in formatRate. */
export function formatTime(nanoseconds: number, digits?: number): string {
  return format(nanoseconds, TIME, digits);
}

/** `formatLength(150_000)` -> "150 m"; `digits` as in formatRate. */
export function formatLength(millimetres: number, digits?: number): string {
  return format(millimetres, LENGTH, digits);
}
