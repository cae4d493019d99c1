/** ln and exp to some 70 digits, in fixed point of whole numbers, to compare the model's terms with. */

const kDigits = 70;
const kOne = 10n ** BigInt(kDigits);

/** A double, exactly. */
function exact(value: number): bigint {
  if (value === 0) return 0n;
  let scaled = value;
  let shift = 0;
  for (; !Number.isInteger(scaled); shift++) scaled *= 2;
  return (BigInt(scaled) * kOne) / 2n ** BigInt(shift);
}

const times = (a: bigint, b: bigint) => (a * b) / kOne;
const over = (a: bigint, b: bigint) => (a * kOne) / b;
const toNumber = (value: bigint) => Number(value) / Number(kOne);

/** ln(1 - p), p < 1, by ln x = 2 artanh((x - 1) / (x + 1)). */
function logUnmarked(p: bigint): bigint {
  const z = over(-p, 2n * kOne - p);
  const square = times(z, z);
  let [sum, power] = [0n, z];
  for (let k = 1n; power !== 0n && k < 20_000n; k += 2n) {
    sum += power / k;
    power = times(power, square);
  }
  return 2n * sum;
}

/** e^x by halving and the series. */
function exponential(x: bigint): bigint {
  const halvings = 40;
  const small = x / 2n ** BigInt(halvings);
  let [sum, term] = [kOne, kOne];
  for (let k = 1n; term !== 0n; k++) {
    term = times(term, small) / k;
    sum += term;
  }
  for (let i = 0; i < halvings; i++) sum = times(sum, sum);
  return sum;
}

/** (1-p)^n. */
const unmarked = (p: number, n: number) => exponential(times(logUnmarked(exact(p)), exact(n)));

/** 1 - (1-p)^n. */
export const markedExactly = (p: number, n: number): number => toNumber(kOne - unmarked(p, n));

/** p / ((1-p)^-n - 1). */
export function perPacketExactly(p: number, n: number): number {
  const none = unmarked(p, n);
  // p (1-p)^n / (1 - (1-p)^n).
  return toNumber(over(times(exact(p), none), kOne - none));
}
