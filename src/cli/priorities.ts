/** Options that are lists of priorities. */
import { UsageError } from "./context.js";

/** Parses "3" or "3,4". */
export function prioritiesOption(text: string): number[] {
  const list = text.split(",").map((one) => (/^[0-7]$/.test(one.trim()) ? Number(one) : Number.NaN));
  if (list.some(Number.isNaN) || new Set(list).size < list.length) {
    throw new UsageError(`--priorities ${text}: not a list of priorities`, {
      hint: "numbers from 0 to 7, each once, such as 3 or 3,4",
    });
  }
  return list;
}
