// Kinds of quantity that files have, and their bounds where a field has none of its own.
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
} from "./units.js";

export interface Quantity {
  example: string;
  /** Throws WeirError. */
  parse: (input: string | number) => number;
  format: (value: number) => string;
  /** Unit of a plain number, if it needs saying. */
  plain: string;
  /** Bounds in the base unit, both allowed. */
  min: number;
  max: number;
}

export const kQuantities = {
  rate: { example: "40Gbps", parse: parseRate, format: formatRate, plain: "bit/s", min: 1_000, max: 10e12 },
  size: { example: "200KB", parse: parseSize, format: formatSize, plain: "bytes", min: 0, max: 1e12 },
  time: { example: "55us", parse: parseTime, format: formatTime, plain: "nanoseconds", min: 0, max: 3_600e9 },
  length: { example: "300m", parse: parseLength, format: formatLength, plain: "millimetres", min: 0, max: 1e9 },
  fraction: { example: "1%", parse: parseFraction, format: String, plain: "", min: 0, max: 1 },
} as const satisfies Record<string, Quantity>;

export type QuantityName = keyof typeof kQuantities;
