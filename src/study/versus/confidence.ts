/** Tells how far means over a few seeds can be trusted: 95% confidence intervals by Student's t ("Student", Biometrika 6, 1908). */
import { mean, sampleStandardDeviation } from "simple-statistics";

/** Quantiles (97.5%) of Student's t for 1 to 30 degrees of freedom. */
const kQuantiles = [
  12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.306, 2.2622, 2.2281, 2.201, 2.1788, 2.1604, 2.1448, 2.1314,
  2.1199, 2.1098, 2.1009, 2.093, 2.086, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
];
/** The 97.5% quantile of the normal distribution. */
const kNormal = 1.959964;

/** Beyond the table the first terms of the expansion of Cornish and Fisher give four digits. */
export function studentQuantile(degrees: number): number {
  const z = kNormal;
  const first = (z ** 3 + z) / (4 * degrees);
  const second = (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * degrees ** 2);
  return kQuantiles[degrees - 1] ?? z + first + second;
}

/** Half of the width of the 95% confidence interval of the mean; undefined for one value. */
export function halfWidth(values: readonly number[]): number | undefined {
  if (values.length < 2) return undefined;
  return (studentQuantile(values.length - 1) * sampleStandardDeviation([...values])) / Math.sqrt(values.length);
}

/** Difference `others` - `firsts`, taken seed by seed, which leaves out what the seeds have in common. */
export interface PairedDifference {
  mean: number;
  /** Half of the width of its 95% confidence interval. */
  ci95: number;
  /** Number of seeds with which both have the figure. */
  seeds: number;
}

/** Returns undefined with fewer than two pairs. */
export function pairedDifference(
  firsts: readonly (number | undefined)[],
  others: readonly (number | undefined)[],
): PairedDifference | undefined {
  const differences = firsts.flatMap((first, i) => {
    const other = others[i];
    return first === undefined || other === undefined ? [] : [other - first];
  });
  const ci95 = halfWidth(differences);
  return ci95 === undefined ? undefined : { mean: mean(differences), ci95, seeds: differences.length };
}
