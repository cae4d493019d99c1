/** A scenario without its faulty fields, so that the rest can be checked in the same round. */
import type { Problem } from "../base/error.js";
import { problemsOf } from "../base/fields.js";
import { withHostNames } from "./host_names.js";
import { type ScenarioInput, scenarioSchema } from "./schema.js";

type Path = Problem["path"];

/** Most rounds: taking one thing out may leave another one incomplete. */
const kMostRounds = 8;

export interface Mended {
  input: ScenarioInput;
  /** Path of something in the scenario as it was written. */
  writtenAt(path: Path): Path;
}

/** Returns undefined where the rest is no scenario. */
export function mended(written: unknown): Mended | undefined {
  const data: unknown = structuredClone(written);
  /** Positions at which the items of each list were written, by the path of the list. */
  const places = new Map<string, number[]>();
  for (let round = 0; round < kMostRounds; round++) {
    const parsed = scenarioSchema.safeParse(data);
    if (parsed.success) return { input: withHostNames(parsed.data), writtenAt: (path) => writtenAt(path, places) };
    const taken = problemsOf(parsed.error, data)
      // Later items are taken out first, so that the places of earlier ones stay.
      .sort((a, b) => compare(b.path, a.path))
      .map(({ path }) => takeOut(data, path, places));
    if (taken.some((path) => path === undefined || isDevice(path))) return undefined;
  }
  return undefined;
}

/** Takes out the field or item, or the one that should have it. Returns its path. */
function takeOut(data: unknown, path: Path, places: Map<string, number[]>): Path | undefined {
  const key = path.at(-1);
  if (key === undefined) return undefined;
  const holder = path
    .slice(0, -1)
    .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], data);
  if (Array.isArray(holder) && typeof key === "number" && key < holder.length) {
    const list = path.slice(0, -1).join(".");
    const origins = places.get(list) ?? holder.map((_, i) => i);
    places.set(list, origins);
    origins.splice(key, 1);
    holder.splice(key, 1);
    return path;
  }
  if (typeof holder === "object" && holder !== null && Object.hasOwn(holder, key)) {
    delete (holder as Record<string, unknown>)[key];
    return path;
  }
  return takeOut(data, path.slice(0, -1), places);
}

/** Fields of the topology that make no devices. */
const kOfLinks = ["link", "links", "routes", "ecmp_seed"];

/** Whether the path is that of a device: without it, its name would be unknown. */
function isDevice([section, field, _, ...inside]: Path): boolean {
  return section === "topology" && !kOfLinks.includes(String(field)) && inside.length === 0;
}

function writtenAt(path: Path, places: ReadonlyMap<string, readonly number[]>): Path {
  return path.map((key, i) => (typeof key === "number" ? (places.get(path.slice(0, i).join("."))?.[key] ?? key) : key));
}

function compare(a: Path, b: Path): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const [one, other] = [a[i], b[i]];
    if (one === other) continue;
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one) < String(other) ? -1 : 1;
  }
  return a.length - b.length;
}
