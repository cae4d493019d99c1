/**
 * Numbers of papers' statements that hold or fall short, and why, over any number of experiments. A sentence of a paper that
 * several experiments judge is one statement with several cases, and counts once: it falls short if one of its cases does.
 */
import type { Cause, Clock } from "./experiment.js";
import type { Ruling, Verdict } from "./verdict.js";

/** Statements, each in one place; those that hold Weir against itself are counted apart. */
export interface Total {
  /** All but those apart. */
  statements: number;
  hold: number;
  /** Fall short, by the cause: of the algorithm on every clock and in every case, or of Weir in one of them. */
  algorithm: number;
  us: number;
  not_judged: number;
  itself: { agree: number; differ: number; not_judged: number };
}

/** One experiment's part. */
export interface Judged {
  paper: string;
  statements: readonly {
    quote: string;
    itself?: boolean;
    verdicts: readonly Pick<Verdict, "clock" | "ruling" | "cause">[];
  }[];
}

/** `clock`: on that one alone. */
export function totalOf(all: readonly Judged[], clock?: Clock): Total {
  const total: Total = {
    statements: 0,
    hold: 0,
    algorithm: 0,
    us: 0,
    not_judged: 0,
    itself: { agree: 0, differ: 0, not_judged: 0 },
  };
  for (const { itself, verdicts } of distinct(all, clock)) {
    const has = (ruling: Ruling) => verdicts.some((one) => one.ruling === ruling);
    if (itself) {
      total.itself[has("differs") ? "differ" : has("agrees") ? "agree" : "not_judged"]++;
      continue;
    }
    total.statements++;
    if (!has("falls short")) total[has("holds") ? "hold" : "not_judged"]++;
    else total[verdicts.some(({ cause }) => cause?.by === "us") ? "us" : "algorithm"]++;
  }
  return total;
}

/** Statements with the verdicts of all their cases, without those that have none on `clock`. */
function distinct(all: readonly Judged[], clock: Clock | undefined) {
  const found = new Map<string, { itself: boolean; verdicts: Judged["statements"][number]["verdicts"][number][] }>();
  for (const { paper, statements } of all) {
    for (const { quote, itself = false, verdicts } of statements) {
      const own = verdicts.filter((one) => clock === undefined || one.clock === clock);
      if (own.length === 0) continue;
      const key = JSON.stringify([paper, quote, itself]);
      const one = found.get(key) ?? { itself, verdicts: [] };
      one.verdicts.push(...own);
      found.set(key, one);
    }
  }
  return [...found.values()];
}

/** "12 statements of the paper: 7 hold, 3 fall short by the algorithm, 1 by us, 1 not judged". */
export function totalText(total: Total): string {
  const { statements, hold, algorithm, us, not_judged, itself } = total;
  const short = `${algorithm} fall short by the algorithm, ${us} by us`;
  const apart = itself.agree + itself.differ + itself.not_judged;
  const beside = `; ${apart} compared with Weir itself: ${itself.agree} agree, ${itself.differ} differ, ${itself.not_judged} not judged`;
  return `${statements} ${statements === 1 ? "statement" : "statements"}: ${hold} hold, ${short}, ${not_judged} not judged${apart > 0 ? beside : ""}`;
}

/** Each cause once, and how many statements fall short by it. */
export function causesOf(all: readonly Judged[]): { cause: Cause; statements: number }[] {
  const found = new Map<string, { cause: Cause; quotes: Set<string> }>();
  for (const { paper, statements } of all) {
    for (const { quote, verdicts } of statements) {
      for (const { cause } of verdicts) {
        if (cause === undefined) continue;
        const one = found.get(cause.id) ?? { cause, quotes: new Set<string>() };
        one.quotes.add(JSON.stringify([paper, quote]));
        found.set(cause.id, one);
      }
    }
  }
  return [...found.values()].map(({ cause, quotes }) => ({ cause, statements: quotes.size }));
}

/** "fixed-point (by the algorithm, 3 statements): what it is. Proof: ..." */
export function causeLines(all: readonly Judged[]): string[] {
  return causesOf(all).map(({ cause: { id, by, what, proof }, statements }) => {
    const whose = by === "algorithm" ? "by the algorithm" : "by us";
    const ground = by === "algorithm" ? "Proof" : "Why it is ours";
    return `${id} (${whose}, ${statements} ${statements === 1 ? "statement" : "statements"}): ${what} ${ground}: ${proof}.`;
  });
}
