/** Judges whether a run is the very same as the first one: all of result and series counts but `made`. */
import { printable } from "./format.js";
import type { NamedRun } from "./overlay.js";

export interface ExactVerdict {
  run: string;
  same: boolean;
  /** The first places that differ, such as `flows.0.goodput_bps`. */
  places: { place: string; first: string; other: string }[];
  /** Number of all places that differ. */
  differences: number;
}

const kMostPlaces = 10;
const kMostCharacters = 40;

/** Gives a verdict on each run but the first. */
export function judgeExactly(runs: readonly NamedRun[]): ExactVerdict[] {
  const [first, ...others] = runs.map(contents);
  return others.map((other, i) => {
    const places = differences(first, other, "");
    return {
      run: runs[i + 1]?.label ?? "",
      same: places.length === 0,
      places: places.slice(0, kMostPlaces),
      differences: places.length,
    };
  });
}

export function exactLines({ run, same, places, differences }: ExactVerdict, first: string): string[] {
  const names = [run, first].map(printable);
  if (same) return [`exact: ${names[0]} is the same as ${names[1]}, but for when and where it was made`];
  const more = differences > places.length ? [`  and ${differences - places.length} more`] : [];
  return [
    `exact: ${names[0]} DIFFERS from ${names[1]} in ${differences} place${differences === 1 ? "" : "s"}`,
    ...places.map(({ place, first, other }) => `  ${printable(place)}: ${printable(first)}, ${printable(other)}`),
    ...more,
  ];
}

function contents({ result, series }: NamedRun): object {
  const { made: _, series: __, ...rest } = result;
  return { ...rest, series };
}

function differences(first: unknown, other: unknown, place: string): ExactVerdict["places"] {
  if (Object.is(first, other)) return [];
  if (!isCollection(first) || !isCollection(other) || Array.isArray(first) !== Array.isArray(other)) {
    return [{ place, first: text(first), other: text(other) }];
  }
  const names = new Set([...Object.keys(first), ...Object.keys(other)]);
  const inside = place === "" ? "" : `${place}.`;
  return [...names].flatMap((name) => differences(first[name], other[name], inside + name));
}

const isCollection = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

function text(value: unknown): string {
  if (value === undefined) return "absent";
  const whole = JSON.stringify(value);
  return whole.length > kMostCharacters ? `${whole.slice(0, kMostCharacters)}...` : whole;
}
