/**
 * The equations of N identical flows linearised at their fixed point, and what follows for small deviations.
 *
 *     x' = J x(t) + K x(t - tau*),   x = (q, R_C, R_T, alpha)
 *
 * J and K are the derivatives of the right-hand sides of equations 6 to 9 as system.ts has them, by central differences, which are
 * right to 1e-9 or so. Deviations that are alike in all flows obey this system. Those in which flows differ, with a sum of 0, leave the
 * queue where it is: they obey the same without its row and column (the *inner* system).
 *
 * **Loop.** Cut where the switch's marks act on the flows, the loop is
 *
 *     L(s) = -(N / s) e^(-s tau*) c (s I - J_i - K_i e^(-s tau*))^-1 k
 *
 * with the inner system's J_i and K_i, its column k of K for q, and c picking R_C. Then 1 + L(s) = D(s) / (s D_i(s)), where D and D_i are the
 * characteristic functions det(s I - J - K e^(-s tau*)) of the whole and of the inner system; L is computed so.
 *
 * **Phase margin**, 180 degrees + arg L(jw) at the gain crossover |L(jw)| = 1 (the least one, should there be several). Zhu et al.,
 * "ECN or Delay", CoNEXT 2016, judge the stability of DCQCN by it. It presumes that the inner system is stable by itself.
 *
 * **Growth.** Whether all solutions of the linear system die out is decided without that: by Mikhailov's criterion, which for a D of order n
 * with delays in the lower orders says that with w from 0 to infinity arg D(s0 + jw) turns by pi/2 (n - 2 m), where m is the number of
 * zeros to the right of s0. The rightmost one is found by bisection over s0.
 */
import { packetFixedPoint } from "./fixed_point.js";
import type { PacketParameters } from "./parameters.js";
import { FluidSystem } from "./system.js";

/** Square matrices by rows. */
type Matrix = readonly (readonly number[])[];

export interface Complex {
  re: number;
  im: number;
}

/** x' = now x(t) + lagged x(t - delay). */
export interface DelaySystem {
  now: Matrix;
  lagged: Matrix;
  delay: number;
}

export interface Linearised {
  /** The whole system: q in parts of Kmax - Kmin, R_C and R_T in parts of R_C, alpha in parts of itself; 1/s. */
  whole: DelaySystem;
  /** The inner system: R_C, R_T, alpha with the queue held. */
  inner: DelaySystem;
}

/** Step of the differences, as a part of the value: the cube root of what doubles resolve. */
const kDifference = 6e-6;

/** Returns undefined where the fixed point has no queue, or lies where equation 5 bends. */
export function linearise(parameters: PacketParameters, flows: number): Linearised | undefined {
  const { p, alpha, rate, target, queue } = packetFixedPoint(parameters, flows);
  if (queue === null || p >= parameters.pmax) return undefined;
  const system = new FluidSystem(
    parameters,
    [{ count: flows, start: 0, stop: Number.POSITIVE_INFINITY, rate: 0, lineRate: 1, alpha: 1 }],
    1,
  );
  system.activateAll();
  const state = Float64Array.of(queue, rate, target, alpha);
  const past = Float64Array.of(queue, rate);
  const column = (vector: Float64Array, i: number): number[] => {
    const value = vector[i] as number;
    // Steps are parts of R_T - R_C, and of q - Kmin: differences are small beside those.
    const size = i === 0 ? queue - parameters.kmin : i === 3 ? alpha : target - rate;
    const side = (sign: number) => {
      const slopes = new Float64Array(4);
      vector[i] = value + sign * kDifference * size;
      system.derivativeIn(1, state, past, slopes);
      const at = vector[i] as number;
      vector[i] = value;
      return { slopes, at };
    };
    const [up, down] = [side(1), side(-1)];
    return Array.from(up.slopes, (slope, row) => (slope - (down.slopes[row] as number)) / (up.at - down.at));
  };
  const units = [parameters.kmax - parameters.kmin, rate, rate, alpha];
  const nothing = [0, 0, 0, 0];
  const now = inUnits(
    [0, 1, 2, 3].map((i) => column(state, i)),
    units,
  );
  const lagged = inUnits([column(past, 0), column(past, 1), nothing, nothing], units);
  const whole = { now, lagged, delay: parameters.delay };
  const within = (matrix: Matrix) => matrix.slice(1).map((row) => row.slice(1));
  return { whole, inner: { ...whole, now: within(whole.now), lagged: within(whole.lagged) } };
}

/** Rows from columns, in parts of `units`. */
function inUnits(columns: readonly (readonly number[])[], units: readonly number[]): number[][] {
  return units.map((unit, row) => columns.map((column, i) => ((column[row] as number) * (units[i] as number)) / unit));
}

/** det(s I - J - K e^(-s delay)). */
function characteristic({ now, lagged, delay }: DelaySystem, s: Complex): Complex {
  const size = Math.exp(-s.re * delay);
  const shift = { re: size * Math.cos(s.im * delay), im: -size * Math.sin(s.im * delay) };
  const rows = now.map((row, i) =>
    row.map((value, j): Complex => {
      const late = lagged[i]?.[j] as number;
      const own = i === j ? s : { re: 0, im: 0 };
      return { re: own.re - value - late * shift.re, im: own.im - late * shift.im };
    }),
  );
  return determinant(rows);
}

/** L(jw). */
export function loop({ whole, inner }: Linearised, frequency: number): Complex {
  const s = { re: 0, im: frequency };
  const closed = divide(characteristic(whole, s), multiply(s, characteristic(inner, s)));
  return { re: closed.re - 1, im: closed.im };
}

/**
 * Real part of the rightmost zero of the characteristic function, 1/s, to 1e-3 or a millionth: below 0, deviations die out. It is
 * not followed below -2 / delay.
 */
export function growth(system: DelaySystem): number {
  let low = -2 / system.delay;
  if (zerosBeyond(system, low) === 0) return low;
  // To the right of it s I outweighs the rest.
  let high = norm(system, 0);
  while (high - low > Math.max(1e-3, 1e-6 * Math.abs(high))) {
    const middle = (low + high) / 2;
    if (zerosBeyond(system, middle) > 0) low = middle;
    else high = middle;
  }
  return high;
}

/** A bound: at least the modulus of every zero to the right of `real`. */
function norm({ now, lagged, delay }: DelaySystem, real: number): number {
  const size = Math.exp(-real * delay);
  const sum = (row: readonly number[] = []) => row.reduce((total, value) => total + Math.abs(value), 0);
  return Math.max(...now.map((row, i) => sum(row) + size * sum(lagged[i])));
}

/** Counts the zeros of the characteristic function to the right of the line Re s = `real`. */
export function zerosBeyond(system: DelaySystem, real: number): number {
  const order = system.now.length;
  const bound = Math.max(norm(system, real), Math.abs(real));
  const at = (frequency: number) => characteristic(system, { re: real, im: frequency });
  // The term e^(-jw delay) counts up to here, so its period must not be stepped over. From `last` on D is s^n but for a thousandth.
  const loud = 20 * bound;
  const last = 1e3 * order * bound;
  let turned = 0;
  let frequency = 0;
  let value = at(0);
  for (let step = 1e-6 * bound; frequency < last; ) {
    if (frequency < loud) step = Math.min(step, 0.5 / system.delay);
    const next = Math.min(last, frequency + step);
    const then = at(next);
    const turn = argument(divide(then, value));
    if (Math.abs(turn) > 0.3 && step > 1e-12 * bound) {
      step /= 2;
      continue;
    }
    turned += turn;
    frequency = next;
    value = then;
    if (Math.abs(turn) < 0.1) step *= 1.5;
  }
  return Math.max(0, Math.round(((order * Math.PI) / 2 - turned) / Math.PI));
}

export function argument({ re, im }: Complex): number {
  return Math.atan2(im, re);
}

export function magnitude({ re, im }: Complex): number {
  return Math.hypot(re, im);
}

function multiply(a: Complex, b: Complex): Complex {
  return { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re };
}

function divide(a: Complex, b: Complex): Complex {
  const size = b.re * b.re + b.im * b.im;
  return { re: (a.re * b.re + a.im * b.im) / size, im: (a.im * b.re - a.re * b.im) / size };
}

/** Computes it by Gauss' elimination with the largest pivot. */
function determinant(rows: Complex[][]): Complex {
  let product: Complex = { re: 1, im: 0 };
  const n = rows.length;
  for (let k = 0; k < n; k++) {
    let best = k;
    for (let i = k + 1; i < n; i++) {
      if (magnitude(rows[i]?.[k] as Complex) > magnitude(rows[best]?.[k] as Complex)) best = i;
    }
    const pivotRow = rows[best] as Complex[];
    const pivot = pivotRow[k] as Complex;
    if (pivot.re === 0 && pivot.im === 0) return pivot;
    if (best !== k) {
      rows[best] = rows[k] as Complex[];
      rows[k] = pivotRow;
      product = { re: -product.re, im: -product.im };
    }
    product = multiply(product, pivot);
    for (let i = k + 1; i < n; i++) {
      const row = rows[i] as Complex[];
      const factor = divide(row[k] as Complex, pivot);
      for (let j = k; j < n; j++) {
        const less = multiply(factor, pivotRow[j] as Complex);
        const value = row[j] as Complex;
        row[j] = { re: value.re - less.re, im: value.im - less.im };
      }
    }
  }
  return product;
}
