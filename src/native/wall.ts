/**
 * The door to the wall's clock. Configurations are composed as they are meant; at a time scale times last longer on the wall and rates
 * are lower, bytes and counts stay. What is a time or a rate the core says itself, by the units of its fields (native/base/describe.h).
 */
import type { WorkerConfig } from "./configuration.js";
import { kUnits } from "./units.js";

/** Units of the fields of a struct that a time scale changes, as in `kUnits`. */
export type Units = { readonly [field: string]: "ns" | "bit/s" | "scale" | Units };

/** A worker's configuration as its thread runs on it. Wall time = meant time * scale, wall rate = meant rate / scale. */
export function toWall(meant: WorkerConfig, scale: number): WorkerConfig {
  return inWallUnits(meant, kUnits.WorkerConfig, scale);
}

/** The same of any part of it, with the part's units. */
export function inWallUnits<T extends object>(meant: T, units: Units, scale: number): T {
  return converted(meant, units, scale) as T;
}

export const wallTime = (meant: number, scale: number): number => Math.round(meant * scale);

/** A rate above 0 stays above it, because 0 stands for none, or for no limit. */
export function wallRate(meant: number, scale: number): number {
  return meant === 0 ? 0 : Math.max(1, Math.round(meant / scale));
}

function converted(meant: unknown, units: Units[string], scale: number): unknown {
  if (meant === undefined) return undefined;
  if (Array.isArray(meant) || ArrayBuffer.isView(meant))
    return (meant as unknown[]).map((each) => converted(each, units, scale));
  if (units === "ns") return wallTime(meant as number, scale);
  if (units === "bit/s") return wallRate(meant as number, scale);
  if (units === "scale") return (meant as number) * scale;
  const own = meant as Record<string, unknown>;
  const wall = { ...own };
  for (const field in units)
    if (own[field] !== undefined) wall[field] = converted(own[field], units[field] as Units, scale);
  return wall;
}
