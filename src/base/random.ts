// Seeded randomness for everything that a scenario leaves to chance. Every purpose has a stream of its own, so that one entry
// more changes nothing about the others.
import { createHash } from "node:crypto";
import { uniformFloat64 } from "pure-rand/distribution/uniformFloat64";
import { xoroshiro128plusFromState } from "pure-rand/generator/xoroshiro128plus";

export class Random {
  private readonly generator;

  /** The same `seed` (whole, from 0) and `stream` give the same numbers. */
  constructor(seed: number, stream: string) {
    const digest = createHash("sha256").update(`${seed} ${stream}`).digest();
    this.generator = xoroshiro128plusFromState([0, 4, 8, 12].map((at) => digest.readInt32LE(at)));
  }

  /** Uniform, at least 0 and less than 1. */
  fraction(): number {
    return uniformFloat64(this.generator);
  }

  /** Uniform over the whole numbers from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor(this.fraction() * count);
  }

  /** Exponential with mean 1. */
  exponential(): number {
    return -Math.log1p(-this.fraction());
  }

  /** `items` in random order. */
  shuffled<T>(items: readonly T[]): T[] {
    const result = [...items];
    for (let i = result.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      [result[i], result[j]] = [result[j] as T, result[i] as T];
    }
    return result;
  }
}
