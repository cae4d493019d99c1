// The one place where units are read and written. Base units: rates bit/s, sizes bytes, times nanoseconds, lengths millimetres,
// all whole numbers up to 2^53; fractions 0..1. Prefixes are decimal (1 KB = 1000 B, 1 Gb/s = 10^9 bit/s), KiB, MiB, GiB binary.
import { WeirError } from "./error.js";

interface Kind {
  name: string;
  base: string;
  /** Units by name, in base units; `/s` is written `ps`. */
  units: Readonly<Record<string, number>>;
  /** Offered when the unit is unknown. */
  offered: readonly string[];
  /** Units that the formatter picks from, largest first. */
  steps: Readonly<Record<string, number>>;
  example: string;
}

const kDecimal = { "": 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12 };
const kBinary = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 };

/** Each of `names` with each prefix; `value` is that of the unit without a prefix. */
function prefixed(prefixes: Readonly<Record<string, number>>, value: number, ...names: string[]) {
  return Object.fromEntries(
    names.flatMap((name) => Object.entries(prefixes).map(([prefix, factor]) => [prefix + name, value * factor])),
  );
}

const kRate: Kind = {
  name: "rate",
  base: "bit/s",
  units: prefixed(kDecimal, 1, "bps", "bitps"),
  offered: ["bit/s", "kbps", "Mbps", "Gbps", "Tbps"],
  steps: { "Tb/s": 1e12, "Gb/s": 1e9, "Mb/s": 1e6, "kb/s": 1e3, "bit/s": 1 },
  example: "40Gbps",
};
const kSize: Kind = {
  name: "size",
  base: "bytes",
  units: {
    ...prefixed({ ...kDecimal, ...kBinary }, 1, "B"),
    ...prefixed(kDecimal, 1 / 8, "bit", "bits"),
    byte: 1,
    bytes: 1,
  },
  offered: ["B", "KB", "MB", "GB", "KiB", "MiB", "GiB", "bit", "kbit", "Mbit", "Gbit"],
  steps: { GB: 1e9, MB: 1e6, KB: 1e3, B: 1 },
  example: "12MB",
};
const kTime: Kind = {
  name: "time",
  base: "ns",
  units: { ns: 1, us: 1e3, ms: 1e6, s: 1e9 },
  offered: ["ns", "us", "ms", "s"],
  steps: { s: 1e9, ms: 1e6, us: 1e3, ns: 1 },
  example: "55us",
};
const kLength: Kind = {
  name: "length",
  base: "mm",
  units: { mm: 1, cm: 10, m: 1e3, km: 1e6 },
  offered: ["mm", "cm", "m", "km"],
  steps: { km: 1e6, m: 1e3, mm: 1 },
  example: "100m",
};

const kPattern = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-zµμ%/]*)$/;
const kLongest = 64;

/** The input is a quantity, but beyond any value of its kind; a field with a range of its own names that range instead. */
export class OutOfRange extends WeirError {}

/** Name of a unit in the tables: µ is u, `/s` is `ps`. */
function tableName(name: string): string {
  return name.replace(/^[µμ]/, "u").replace(/\/s$/, "ps");
}

function shown(input: unknown): string {
  const text = typeof input === "string" ? input : String(input);
  return text.length > kLongest ? `${text.slice(0, kLongest)}...` : text;
}

function split(input: string, example: string, what: string): [number, string] {
  const match = input.length > kLongest ? null : kPattern.exec(input.trim());
  if (match === null)
    throw new WeirError(`${shown(input)}: not a ${what}; write a number and a unit, such as ${example}`);
  return [Number(match[1]), match[2] ?? ""];
}

function whole(value: number, input: unknown, kind: Kind): number {
  const limit = Number.MAX_SAFE_INTEGER;
  if (!Number.isFinite(value) || value < 0 || value > limit) {
    throw new OutOfRange(`${shown(input)}: out of range; a ${kind.name} is between 0 and ${format(limit, kind, 3)}`);
  }
  const rounded = Math.round(value);
  // Decimal fractions are not exact in binary, so 22.4 KB may come out a hair away from 22400.
  if (Math.abs(value - rounded) > Math.max(1e-6, value * 1e-12)) {
    throw new WeirError(`${shown(input)}: not a whole number of ${kind.base}`);
  }
  return rounded;
}

const parser =
  (kind: Kind) =>
  (input: string | number): number =>
    parse(input, kind);

function parse(input: string | number, kind: Kind): number {
  if (typeof input === "number") return whole(input, input, kind);
  const [amount, name] = split(input, kind.example, kind.name);
  const unit = tableName(name);
  if (Object.hasOwn(kind.units, unit)) return whole(amount * (kind.units[unit] ?? 0), input, kind);
  const known = kind.offered.join(", ");
  if (name === "") {
    if (amount === 0) return 0;
    throw new WeirError(`${shown(input)}: no unit; use ${known}`);
  }
  const meant = kind.offered.find((candidate) => tableName(candidate).toLowerCase() === unit.toLowerCase());
  const remedy = meant === undefined ? `use ${known}` : `did you mean ${amount}${meant}?`;
  throw new WeirError(`${shown(input)}: unknown ${kind.name} unit; ${remedy}`);
}

/** Bits per second from `40Gbps`, `40 Gb/s`, or a number of bit/s. Throws WeirError. */
export const parseRate = parser(kRate);

/** Bytes from `22.4KB`, `12 MB`, `1MiB`, `8 Mbit`, or a number of bytes. Throws WeirError. */
export const parseSize = parser(kSize);

/** Whole nanoseconds from `55us`, `1.5 ms`, or a number of nanoseconds. Throws WeirError. */
export const parseTime = parser(kTime);

/** Whole millimetres from `100m`, `2 km`, or a number of millimetres. Throws WeirError. */
export const parseLength = parser(kLength);

/** A fraction 0..1 from `1%`, `0.01` or 0.01. Throws WeirError. */
export function parseFraction(input: string | number): number {
  const [, part, whole] = /^\s*(\d+)\s*\/\s*(\d+)\s*$/.exec(String(input)) ?? [];
  if (part !== undefined) return parseFraction(Number(part) / Number(whole));
  const [amount, name] = typeof input === "number" ? [input, ""] : split(input, "1%", "fraction");
  if (name !== "" && name !== "%" && name !== "percent") {
    throw new WeirError(`${shown(input)}: unknown fraction unit; use % or a number between 0 and 1`);
  }
  const value = name === "" ? amount : amount * 0.01;
  if (!(value >= 0 && value <= 1)) {
    throw new OutOfRange(`${shown(input)}: out of range; a fraction is between 0 and 1, or 0% and 100%`);
  }
  return value;
}

const formatter =
  (kind: Kind) =>
  (value: number, digits?: number): string =>
    format(value, kind, digits);

function format(value: number, kind: Kind, digits?: number): string {
  // Rounding may carry a value up to one of the next unit.
  const magnitude = Math.abs(digits === undefined ? value : Number(value.toPrecision(digits)));
  for (const [name, step] of Object.entries(kind.steps)) {
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
export const formatRate = formatter(kRate);

/** `formatSize(22400)` -> "22.4 KB" (1 KB = 1000 B); `digits` as in formatRate. */
export const formatSize = formatter(kSize);

/** `formatTime(55000)` -> "55 us"; `digits` as in formatRate. */
export const formatTime = formatter(kTime);

/** `formatLength(150_000)` -> "150 m"; `digits` as in formatRate. */
export const formatLength = formatter(kLength);
