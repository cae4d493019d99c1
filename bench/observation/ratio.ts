/** Medians beside each other, and how sure that is. */
import { median, quantileSorted, sampleWithReplacement } from "simple-statistics";
import { Random } from "../../src/base/random.js";

export interface Ratio {
  /** Of medians. */
  ratio: number;
  /** 95% of what it would be if the rounds had been drawn anew. */
  low: number;
  high: number;
}

const kDraws = 2000;

/** `own` and `other` by rounds: what disturbs a round disturbs both, so rounds are drawn, not figures. */
export function pairedRatio(own: readonly number[], other: readonly number[]): Ratio {
  const rounds = own.map((value, i) => [value, other[i] as number] as const);
  const of = (drawn: readonly (readonly [number, number])[]) =>
    median(drawn.map(([value]) => value)) / median(drawn.map(([, value]) => value));
  const random = new Random(1, "rounds");
  const draws = Array.from({ length: kDraws }, () =>
    of(sampleWithReplacement(rounds, rounds.length, () => random.fraction())),
  );
  draws.sort((a, b) => a - b);
  return { ratio: of(rounds), low: quantileSorted(draws, 0.025), high: quantileSorted(draws, 0.975) };
}
