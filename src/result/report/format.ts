/** Writes numbers for tables, reports and the live view: one place, ASCII only. */

/** Writes bit/s as Gb/s: "38.214". */
export function gbps(bitsPerSecond: number): string {
  return (bitsPerSecond / 1e9).toFixed(3);
}

/** Writes bytes as KB (1000 B): "61.20". */
export function kilobytes(bytes: number): string {
  return (bytes / 1000).toFixed(2);
}

/** Writes a bare number with about four significant figures and no exponent; "-" for one that is not known. */
export function fixed(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  if (size === 0) return "0";
  return value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : size >= 0.01 ? 3 : 5);
}

/** Writes a count, shortened above a million so that columns stay narrow in the live view: "1.24M". */
export function count(value: number): string {
  if (value < 1e6) return String(Math.round(value));
  return value < 1e9 ? `${fixed(value / 1e6)}M` : `${fixed(value / 1e9)}G`;
}

/** Writes a fraction as a percentage: "97.4%". */
export function percent(fraction: number): string {
  return `${(fraction * 100).toFixed(1)}%`;
}

/** A difference of more than so many times the first value is told as a factor. */
const kFactor = 10;

/** Writes "+2.4%"; "x3514", where that is more than `kFactor` times the first value; "from 0", which has no relation to anything. */
export function signedPercent(difference: number | null): string {
  if (difference === null) return "from 0";
  if (difference + 1 > kFactor) return `x${fixed(difference + 1)}`;
  return `${difference > 0 ? "+" : ""}${percent(difference)}`;
}

/** Writes "3.2 s", "4:05 min", "2:03 h". */
export function duration(seconds: number): string {
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const [unit, whole] = seconds < 3599.5 ? ["min", Math.round(seconds)] : ["h", Math.round(seconds / 60)];
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")} ${unit}`;
}

/** Replaces characters that could drive a terminal (escape sequences, line breaks) in a name that came from a file. */
export function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, "?");
}
