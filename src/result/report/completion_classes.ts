/** Completion times of a result by size: one row of tables and comparisons for each. */
import { formatSize } from "../../base/units.js";
import type { FctResult, Result } from "../result.js";

export type CompletionClass = Pick<FctResult, "count" | "slowdown" | "fct_us"> & { name: string };

/** The class of all transfers, then those by size; none when no flow had an end. */
export function completionClasses({ fct }: Pick<Result, "fct">): CompletionClass[] {
  return fct ? [{ ...fct, name: "all" }, ...fct.bins.map((bin) => ({ ...bin, name: sizeClass(bin) }))] : [];
}

/** Names a class: "10 KB to 100 KB". */
export function sizeClass({ above_bytes, up_to_bytes }: FctResult["bins"][number]): string {
  if (up_to_bytes === undefined) return `over ${formatSize(above_bytes, 4)}`;
  return above_bytes === 0
    ? `up to ${formatSize(up_to_bytes, 4)}`
    : `${formatSize(above_bytes, 4)} to ${formatSize(up_to_bytes, 4)}`;
}
