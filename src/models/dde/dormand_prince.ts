/**
 * Dormand and Prince's explicit Runge-Kutta pair of order 5(4), with Shampine's continuous extension of order 4 (Hairer, Norsett,
 * Wanner, Solving Ordinary Differential Equations I, section II.5 and II.6: the coefficients of DOPRI5).
 *
 * With h the step, k_i the derivatives of its stages and theta in 0..1 the place within it
 *
 *     y(theta) = y0 + theta (d + (1 - theta) (b + theta ((d - h k_7 - b) + (1 - theta) e)))
 *     d = y1 - y0,   b = h k_1 - d,   e = h sum kDense_i k_i
 *
 * The last stage is the derivative at the end of the step, and so the first of the next one.
 */

export const kStages = 7;

/** Place of each stage in the step. */
export const kNodes: readonly number[] = [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1];

/** Row i: weights of the earlier derivatives in stage i. The last row gives the solution of order 5. */
export const kWeights: readonly (readonly number[])[] = [
  [],
  [1 / 5],
  [3 / 40, 9 / 40],
  [44 / 45, -56 / 15, 32 / 9],
  [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
  [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
  [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
];

/** Weights of order 5 less those of order 4. */
export const kError: readonly number[] = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40];

const kDense: readonly number[] = [
  -12715105075 / 11282082432,
  0,
  87487479700 / 32700410799,
  -10690763975 / 1880347072,
  701980252875 / 199316789632,
  -1453857185 / 822651844,
  69997945 / 29380423,
];

/** One step as a polynomial in time, for as much of it as was taken. */
export class DenseStep {
  /** Times of the part that was taken. */
  begin = 0;
  end = 0;
  /** Length of the whole step: the unit of theta. */
  private length = 1;
  private readonly terms: Float64Array;

  constructor(readonly dimension: number) {
    this.terms = new Float64Array(5 * dimension);
  }

  /** Makes it the step from `before` to `after`, with the derivatives of all stages. */
  set(begin: number, length: number, before: Float64Array, after: Float64Array, k: readonly Float64Array[]): void {
    const { dimension: n, terms } = this;
    this.begin = begin;
    this.end = begin + length;
    this.length = length;
    const [first, , third, fourth, fifth, sixth, last] = k as [
      Float64Array,
      Float64Array,
      Float64Array,
      Float64Array,
      Float64Array,
      Float64Array,
      Float64Array,
    ];
    const [d1, , d3, d4, d5, d6, d7] = kDense as [number, number, number, number, number, number, number];
    for (let i = 0; i < n; i++) {
      const y0 = before[i] as number;
      const difference = (after[i] as number) - y0;
      const k1 = first[i] as number;
      const k7 = last[i] as number;
      const bend = length * k1 - difference;
      terms[i] = y0;
      terms[n + i] = difference;
      terms[2 * n + i] = bend;
      terms[3 * n + i] = difference - length * k7 - bend;
      terms[4 * n + i] =
        length *
        (d1 * k1 +
          d3 * (third[i] as number) +
          d4 * (fourth[i] as number) +
          d5 * (fifth[i] as number) +
          d6 * (sixth[i] as number) +
          d7 * k7);
    }
  }

  /** Returns component `i` at `time`, which may be a little outside of the step. */
  value(i: number, time: number): number {
    const { dimension: n, terms } = this;
    const theta = (time - this.begin) / this.length;
    const rest = 1 - theta;
    const inner = (terms[3 * n + i] as number) + rest * (terms[4 * n + i] as number);
    const middle = (terms[2 * n + i] as number) + theta * inner;
    return (terms[i] as number) + theta * ((terms[n + i] as number) + rest * middle);
  }

  /** Writes the first `out.length` components at `time`. */
  values(time: number, out: Float64Array): void {
    for (let i = 0; i < out.length; i++) out[i] = this.value(i, time);
  }
}
