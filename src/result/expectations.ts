/** Judges whether a result is what its scenario expects. */
import type { Expectation } from "../scenario/expectations.js";
import { nothingIn } from "./nothing.js";
import type { Result } from "./result.js";

/** Outcome of one expectation. */
export interface Judged {
  expect: string;
  met: boolean;
  /** Reason why it is not met. */
  reason?: string;
}

/** Values that a reason shows. */
const kMostShown = 3;

export function judgeExpectations(result: Result, expectations: readonly Expectation[]): Judged[] {
  return expectations.map((expectation) => {
    const reason = unmet(result, expectation);
    return { expect: expectation.text, met: reason === undefined, ...(reason !== undefined && { reason }) };
  });
}

/** Judges programs, and connections of TCP, which are always expected to do what they are for. */
export function judgePrograms({ programs = {}, flows }: Pick<Result, "programs" | "flows">): Judged[] {
  const broken = flows.flatMap(({ id, tcp }) =>
    tcp?.failure === undefined ? [] : [{ expect: `TCP ${id} lasts`, met: false, reason: `it failed: ${tcp.failure}` }],
  );
  const ran = Object.entries(programs).map(([id, { host, failure }]) => ({
    expect: `program ${id} on ${host} ends well`,
    met: failure === undefined,
    ...(failure !== undefined && { reason: `it ${failure}` }),
  }));
  return [...ran, ...broken];
}

/** Returns why it is not met; a field that is not there meets nothing, nor does one that says nothing. */
function unmet(result: Result, { path, operator, value }: Expectation): string | undefined {
  const found = [...valuesAt(result, path)];
  if (found.length === 0) return `the result has no ${path.join(".")}`;
  const odd = found.find((one) => typeof one.value !== typeof value);
  if (odd !== undefined) {
    const kind = odd.value === undefined ? "is not there" : `is no ${typeof value}`;
    return `${odd.place} ${kind}`;
  }
  // Nobody can have expected the values of figures of nothing.
  const [nothing] = found.flatMap(({ place }) => nothingIn(result, place.split(".")) ?? []);
  if (nothing !== undefined) return nothing;
  const failed = found.filter((one) => !holds(one.value as number, operator, value as number));
  if (failed.length === 0) return undefined;
  const shown = failed.slice(0, kMostShown).map((one) => `${one.place} is ${String(one.value)}`);
  const rest = failed.length - shown.length;
  return shown.join(", ") + (rest > 0 ? `, and ${rest} more` : "");
}

/** Yields all values that a path names, each with its own path; one that is missing on the way is undefined. */
export function* valuesAt(
  from: unknown,
  [name, ...rest]: readonly string[],
  before: readonly string[] = [],
): Iterable<{ place: string; value: unknown }> {
  if (name === undefined) return void (yield { place: before.join("."), value: from });
  const inside = typeof from === "object" && from !== null ? (from as Record<string, unknown>) : {};
  const names = name === "*" ? Object.keys(inside) : [name];
  for (const one of names) {
    if (Object.hasOwn(inside, one)) yield* valuesAt(inside[one], rest, [...before, one]);
    else yield { place: [...before, one, ...rest].join("."), value: undefined };
  }
}

function holds(found: number, operator: Expectation["operator"], value: number): boolean {
  switch (operator) {
    case "<":
      return found < value;
    case ">":
      return found > value;
    case "<=":
      return found <= value;
    case ">=":
      return found >= value;
    case "==":
      return found === value;
    case "!=":
      return found !== value;
  }
}
