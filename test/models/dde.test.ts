/** The solver of delay differential equations against solutions that are known, and the order that it is to have. */
import { describe, expect, it } from "vitest";
import { type DelayProblem, DelaySolver, type SolverOptions } from "../../src/models/dde/index.js";

const one = (problem: Partial<DelayProblem> & Pick<DelayProblem, "derivative">): DelayProblem => ({
  dimension: 1,
  lagged: 1,
  lag: 1,
  scale: Float64Array.of(1),
  before: (_, past) => void past.fill(0),
  ...problem,
});

function solve(problem: DelayProblem, initial: number, until: number, options?: SolverOptions) {
  const solver = new DelaySolver(problem, Float64Array.of(initial), options);
  const seen: [number, number][] = [];
  solver.advance(until, (step) => seen.push([step.end, step.value(0, step.end)]));
  return { value: solver.y[0] as number, steps: solver.steps, seen, time: solver.time };
}

/** y' = -y(t - pi/2) with the past sin t is sin t for ever. */
const sine = one({
  lag: Math.PI / 2,
  before: (time, past) => {
    past[0] = Math.sin(time);
  },
  derivative: (_, _y, past, out) => {
    out[0] = -(past[0] as number);
  },
});

/** y' = -y(t - 1), y = 1 before: sum (-1)^k (t - k + 1)^k / k! */
const unitStep = one({
  before: (_, past) => void past.fill(1),
  derivative: (_, _y, past, out) => {
    out[0] = -(past[0] as number);
  },
});
function unitStepAt(time: number): number {
  let [sum, factorial] = [0, 1];
  for (let k = 0; k <= Math.floor(time) + 1; k++) {
    factorial *= Math.max(1, k);
    sum += ((-1) ** k * (time - k + 1) ** k) / factorial;
  }
  return sum;
}

describe("solver", () => {
  it("is of order 5", () => {
    const errors = [4, 8, 16, 32].map((parts) =>
      Math.abs(solve(sine, 0, 4 * Math.PI, { fixedStep: Math.PI / 2 / parts }).value),
    );
    const orders = errors.slice(1).map((error, i) => Math.log2((errors[i] as number) / error));
    for (const order of orders) expect(order).toBeGreaterThan(4.7);
    expect(errors.at(-1)).toBeLessThan(1e-9);
  });

  it("keeps to its tolerance, with more steps the less it is", () => {
    let steps = 0;
    for (const tolerance of [1e-4, 1e-6, 1e-8, 1e-10]) {
      const run = solve(sine, 0, 10 * Math.PI, { tolerance });
      expect(Math.abs(run.value)).toBeLessThan(50 * tolerance);
      expect(run.steps).toBeGreaterThan(steps);
      steps = run.steps;
    }
  });

  it("meets the bends that the start leaves behind", () => {
    const { value, seen, time } = solve(unitStep, 1, 10.3, { tolerance: 1e-10 });
    expect(time).toBe(10.3);
    expect(value).toBeCloseTo(unitStepAt(10.3), 8);
    for (const [at, y] of seen) expect(y).toBeCloseTo(unitStepAt(at), 8);
    for (const joint of [1, 2, 3]) expect(seen.some(([at]) => Math.abs(at - joint) < 1e-12)).toBe(true);
  });

  it("meets jumps of the derivative at levels: a relay with delay", () => {
    // Up until 1 is seen exceeded, down until 0 is seen passed: a saw between -1/2 and 3/2 with a delay of 1/2.
    let up = true;
    const relay = one({
      lag: 0.5,
      levels: [
        [0, 0],
        [0, 1],
      ],
      begin: (past) => {
        const value = past[0] as number;
        up = value > 1 ? false : value < 0 ? true : up;
      },
      derivative: (_, _y, _past, out) => {
        out[0] = up ? 1 : -1;
      },
    });
    const { seen, steps } = solve(relay, 0, 40);
    for (const [time, y] of seen) {
      const phase = (time + 0.5) % 4;
      expect(y).toBeCloseTo(phase < 2 ? phase - 0.5 : 3.5 - phase, 10);
    }
    expect(steps).toBeLessThan(400);
  });

  it("holds a component at its bound until the derivative points inward", () => {
    // Projected sine: up to pi it is sin t, 0 until 3 pi / 2, then 1 + sin t.
    const bounded = one({
      lower: Float64Array.of(0),
      derivative: (time, _y, _past, out) => {
        out[0] = Math.cos(time);
      },
    });
    const { seen, value } = solve(bounded, 0, 2 * Math.PI, { tolerance: 1e-9 });
    for (const [time, y] of seen) {
      const expected = time < Math.PI ? Math.sin(time) : time < 1.5 * Math.PI ? 0 : 1 + Math.sin(time);
      expect(y).toBeCloseTo(expected, 7);
    }
    expect(value).toBeCloseTo(1, 7);
    const upper = one({ ...bounded, upper: Float64Array.of(0.5) });
    // Held at 1/2 from pi/6 to pi/2, then 1/2 + sin t - 1.
    expect(solve(upper, 0, 2, { tolerance: 1e-9 }).value).toBeCloseTo(Math.sin(2) - 0.5, 7);
  });

  it("lets a component go that is held for a moment only", () => {
    // Outward up to 2e-8, and so steep that a step without the bound would begin outward, too. Then 1 - t^2/2.
    const brief = one({
      upper: Float64Array.of(1),
      derivative: (time, _y, _past, out) => {
        out[0] = Math.exp(-1e9 * time) - time;
      },
    });
    const { value, steps } = solve(brief, 1, 0.9);
    expect(value).toBeCloseTo(1 - 0.9 ** 2 / 2, 6);
    expect(steps).toBeLessThan(200);
  });

  it("takes jumps of the solution at events, and sees them a delay later", () => {
    const jump = one({
      events: [0.5],
      event: (_, y) => {
        y[0] = 1;
      },
      derivative: (_, _y, past, out) => {
        out[0] = past[0] as number;
      },
    });
    expect(solve(jump, 0, 1.5).value).toBeCloseTo(1, 13);
    expect(solve(jump, 0, 2).value).toBeCloseTo(1.5, 13);
    // It sees itself grow from 2.5 on: 2 + (t - 2.5) + (t - 2.5)^2 / 2.
    expect(solve(jump, 0, 3).value).toBeCloseTo(2.625, 12);
  });

  it("says where there is no solution", () => {
    const broken = one({
      derivative: (time, _y, _past, out) => {
        out[0] = time > 0.7 ? Number.NaN : 1;
      },
    });
    expect(() => solve(broken, 0, 2)).toThrow(RangeError);
  });

  it("says where a solution would take for ever", () => {
    const stiff = one({
      derivative: (time, y, _past, out) => {
        out[0] = -1e7 * ((y[0] as number) - Math.cos(time));
      },
    });
    expect(() => solve(stiff, 0, 1000)).toThrow(/100000 steps from 0 on reach only 0\.0.*delay is 1: .*shorter delay/);
  });
});
