// Distributions of flow sizes, as cumulative distributions that are linear between their points.

/** A size in bytes, and the probability of a flow that is no larger. */
export type CdfPoint = readonly [bytes: number, probability: number];

export const kDistributionNames = ["web-search", "data-mining", "storage"] as const;
export type DistributionName = (typeof kDistributionNames)[number];

const kPacket = 1460;

const kPoints: Record<DistributionName, readonly CdfPoint[]> = {
  // Alizadeh et al., "Data Center TCP", SIGCOMM 2010, figure 4, with the points that HPCC (SIGCOMM 2019) was evaluated with:
  // alibaba-edu/High-Precision-Congestion-Control, traffic_gen/WebSearch_distribution.txt.
  "web-search": [
    [0, 0],
    [10_000, 0.15],
    [20_000, 0.2],
    [30_000, 0.3],
    [50_000, 0.4],
    [80_000, 0.53],
    [200_000, 0.6],
    [1_000_000, 0.7],
    [2_000_000, 0.8],
    [5_000_000, 0.9],
    [10_000_000, 0.97],
    [30_000_000, 1],
  ],
  // Greenberg et al., "VL2", SIGCOMM 2009, figure 2, with the points of pFabric (SIGCOMM 2013) in packets of 1460 bytes:
  // HKUST-SING/TrafficGenerator, conf/CDF_vl2.txt.
  "data-mining": [
    [1 * kPacket, 0.5],
    [2 * kPacket, 0.6],
    [3 * kPacket, 0.7],
    [7 * kPacket, 0.8],
    [267 * kPacket, 0.9],
    [2107 * kPacket, 0.95],
    [66_667 * kPacket, 0.99],
    [666_667 * kPacket, 1],
  ],
  // Alibaba's distributed storage, 2019: alibaba-edu/High-Precision-Congestion-Control, traffic_gen/AliStorage2019.txt. It
  // stands in for the storage traffic of the DCQCN paper, whose distribution was not published.
  storage: [
    [0, 0],
    [4_000, 0.2293],
    [8_000, 0.6921],
    [16_000, 0.8061],
    [32_000, 0.9047],
    [64_000, 0.9353],
    [128_000, 0.9677],
    [256_000, 0.9753],
    [2_000_000, 1],
  ],
};

export class SizeDistribution {
  private readonly sizes: readonly number[];
  private readonly probabilities: readonly number[];
  /** Mean size, bytes. */
  readonly mean: number;

  /** `points` ascend in both columns and end at probability 1; the first has all the probability up to it at its size. */
  constructor(points: readonly CdfPoint[]) {
    this.sizes = points.map(([bytes]) => bytes);
    this.probabilities = points.map(([, probability]) => probability);
    this.mean = points.reduce((sum, [bytes, probability], i) => {
      const [smaller, before] = points[i - 1] ?? [bytes, 0];
      return sum + ((bytes + smaller) / 2) * (probability - before);
    }, 0);
  }

  static named(name: DistributionName): SizeDistribution {
    return new SizeDistribution(kPoints[name]);
  }

  static fixed(bytes: number): SizeDistribution {
    return new SizeDistribution([[bytes, 1]]);
  }

  get largest(): number {
    return this.sizes.at(-1) ?? 0;
  }

  /** Draws a size in whole bytes, at least 1. `random`: its fractions are uniform from 0 to 1. */
  draw(random: { fraction(): number }): number {
    const u = random.fraction();
    const i = this.probabilities.findIndex((probability) => u < probability);
    const [larger = 0, above = 1] = [this.sizes[i], this.probabilities[i]];
    const [smaller = larger, below = 0] = [this.sizes[i - 1], this.probabilities[i - 1]];
    return Math.max(1, Math.round(smaller + ((larger - smaller) * (u - below)) / (above - below)));
  }
}
