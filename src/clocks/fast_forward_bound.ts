/** By how much what a simulation skips may be off: bounds of runs and of studies. */
import { OutOfRange, parseFraction } from "../base/units.js";

/** Bound of `auto`. */
export const kAutoBound = 0.03;
/** The bounds that can be asked for. */
export const kBounds = { least: 0.001, most: 0.5 } as const;

/** Parses "auto" and parts such as "5%". @throws WeirError */
export function parseBound(text: string): number {
  const bound = text === "auto" ? kAutoBound : parseFraction(text);
  if (bound >= kBounds.least && bound <= kBounds.most) return bound;
  throw new OutOfRange(`${text}: out of range`);
}
