/**
 * Successive halving (Karnin, Koren, Somekh: Almost Optimal Exploration in Multi-Armed Bandits, ICML 2013; Jamieson and Talwalkar,
 * AISTATS 2016) over candidates that are drawn at random: all run with one seed, the better half with another, the better half of these
 * with two more, and so on. Who is bad is known after few runs; who is good gets many.
 */

/** Candidates and seeds of one round, by their numbers. */
export interface Round {
  candidates: readonly number[];
  seeds: readonly number[];
}

/** Score of one candidate with one seed: expectations that are not met, and the objective, less is better. */
export interface Score {
  unmet: number;
  objective: number;
  /** The run is not valid, or the objective is a figure of nothing. It counts as one expectation that is not met. */
  nothing?: boolean;
}

/** Seeds of each round, for `seeds` in all: 1, 1, 2, 4, ... and the rest. */
export function roundSeeds(seeds: number): number[][] {
  const rounds: number[][] = [];
  for (let done = 0; done < seeds; ) {
    const next = Math.min(seeds, Math.max(1, 2 * done));
    rounds.push(Array.from({ length: next - done }, (_, i) => done + i));
    done = next;
  }
  return rounds;
}

/** Runs that `count` candidates take, the first of which is in every round. */
export function runsOf(count: number, seeds: number): number {
  let left = count;
  return roundSeeds(seeds).reduce((runs, { length }) => {
    const all = runs + left * length;
    left = halfOf(left);
    return all;
  }, 0);
}

/** Number of candidates that stay: the better half, with the first, which the others have to beat, so at least two. */
const halfOf = (count: number) => Math.max(2, Math.ceil(count / 2));

/** Most candidates that `runs` runs are enough for; less than 2: too few runs. */
export function mostCandidates(runs: number, seeds: number): number {
  let count = 1;
  while (runsOf(count + 1, seeds) <= runs) count++;
  return count;
}

/**
 * Finds the best of `count` candidates over all `seeds`, by its number, with its scores and those of 0. Fewer unmet expectations come
 * first, then the lower mean objective, then the candidate that was drawn first; so 0, the scenario's own values, stays unless another one
 * is better.
 * @param run Returns the scores of a round's runs: for each candidate, each seed.
 */
export async function halve(
  count: number,
  seeds: number,
  run: (round: Round) => Promise<Score[][]>,
): Promise<{ best: number; before: Score[]; after: Score[] }> {
  let left = Array.from({ length: count }, (_, i) => i);
  const scores = left.map((): Score[] => []);
  for (const round of roundSeeds(seeds)) {
    const found = await run({ candidates: left, seeds: round });
    left.forEach((candidate, i) => {
      scores[candidate]?.push(...(found[i] ?? []));
    });
    const order = [...left].sort((a, b) => compare(scores[a] ?? [], scores[b] ?? []) || a - b);
    const kept = order.filter((candidate) => candidate !== 0).slice(0, halfOf(left.length) - 1);
    left = [0, ...kept];
  }
  const best = left.reduce((one, other) => (compare(scores[other] ?? [], scores[one] ?? []) < 0 ? other : one), 0);
  return { best, before: scores[0] ?? [], after: scores[best] ?? [] };
}

/** Below 0: `a` is better. Both have the same seeds. */
export function compare(a: readonly Score[], b: readonly Score[]): number {
  const unmet = (of: readonly Score[]) => of.reduce((sum, score) => sum + score.unmet, 0);
  return unmet(a) - unmet(b) || total(a) - total(b);
}

function total(scores: readonly Score[]): number {
  return scores.reduce((sum, { objective }) => sum + objective, 0);
}
