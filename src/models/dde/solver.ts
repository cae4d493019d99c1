/**
 * Delay differential equations with one constant delay, y'(t) = f(t, y(t), y(t - lag)), by Dormand-Prince 5(4) with its
 * continuous extension as history (method of steps: Bellen, Zennaro, Numerical Methods for Delay Differential Equations, chapters
 * 4 and 6).
 *
 * No step is longer than the delay, so every look back is at a step that is done. The extension's error is O(h^5) in a step, as
 * much as order 5 of the solution needs.
 *
 * **Discontinuities.** Where y or a derivative of it jumps at s, the next higher derivative jumps at s + lag, since f sees s
 * then; at s + 2 lag the one after that. Steps end at such places, for jumps of up to the third derivative: kDepth times; later
 * ones are smooth enough for the error control. They come from
 * - the start, where the solution's history ends, and the times that the problem names (`events`), at which y itself may jump;
 * - *levels*: values of a component at which f jumps or bends once it sees them, a delay later;
 * - *bounds*: a component that has reached one stays there while its derivative points outward (projected dynamics: y_i' = 0),
 *   and leaves when it points inward. Both moments are found on the extension, and end a step.
 *
 * **At a bound** a derivative near 0 may have either sign by rounding alone, and a component would be held and let go for ever.
 * So it has reached its bound only where it is beyond it by more than kSlight of a step's allowed error (less is put back onto
 * it), one that was let go begins the next step free, and a step that an arrival or a departure ends is at least
 * kLeast of the delay long.
 *
 * Within a piece (from one such place to the next) f is smooth. `begin` tells the problem the past in the middle of the piece, so
 * that f can hold to one side of its levels even where rounding puts the past a bit beyond.
 *
 * A span of one delay that takes more than kMostSteps is a RangeError: where f is too fast for explicit steps, a solution would
 * take hours, and where steps no longer move the time, for ever.
 *
 * **Error control**, per step, root mean square over the components of error / (tolerance (scale_i + |y_i|)) at most 1.
 */
import { type DenseStep, kError, kNodes, kStages, kWeights } from "./dormand_prince.js";
import { History } from "./history.js";

export interface DelayProblem {
  /** Number of components of y. */
  dimension: number;
  /** Number of the first components that are seen with the delay. */
  lagged: number;
  /** Positive, in the unit of time. */
  lag: number;
  /** Value of each component that counts as small in its error. */
  scale: Float64Array;
  lower?: Float64Array;
  upper?: Float64Array;
  /** Writes the past before the start. */
  before: (time: number, past: Float64Array) => void;
  derivative: (time: number, y: Float64Array, past: Float64Array, out: Float64Array) => void;
  /** Component that is seen with the delay -> values at which f is not smooth. */
  levels?: readonly (readonly [component: number, value: number])[];
  /** Called when a piece begins, with the `past` of its middle. Components of `y` that are not seen with the delay may change. */
  begin?: (past: Float64Array, y: Float64Array) => void;
  /** Increasing times, after the start or at it, at which `event` may change y and f. */
  events?: readonly number[];
  event?: (index: number, y: Float64Array) => void;
}

export interface SolverOptions {
  /** Allowed relative error of a step. */
  tolerance?: number;
  /** Length of all steps, which are taken without error control. */
  fixedStep?: number;
}

/** Number of delays over which jumps are followed. */
const kDepth = 3;
/** Steps in a row that error control may refuse. */
const kMostRefused = 60;
/** Most steps in a delay. Stiff cases of `src/models/dcqcn` take a thousand. */
const kMostSteps = 100_000;
/** Part of a step: a look back that ends at a joint takes the side on which the step lies. */
const kInside = 1e-3;
/** Part of the delay: places that are nearer to one another are one. */
const kSame = 1e-9;

/** Part of the error that a step may have: by less a component does not go beyond its bound. */
const kSlight = 1e-3;
/** Part of the delay: steps that bounds cut short are not shorter. */
const kLeast = 1e-8;

/** Moment at which a component reaches a bound or leaves it. */
interface Turn {
  component: number;
  time: number;
}

interface Joint {
  time: number;
  /** Number of delays for which its cause has been carried on. */
  depth: number;
}

/** Values of `held`: the bound that holds a component. */
const kFree = 0;
const kAtLower = 1;
const kAtUpper = 2;

export class DelaySolver {
  readonly y: Float64Array;
  time = 0;
  /** Steps taken. */
  steps = 0;

  private readonly history: History;
  private readonly k: Float64Array[];
  private readonly stage: Float64Array;
  private readonly next: Float64Array;
  private readonly past: Float64Array;
  private readonly held: Uint8Array;
  /** Set for components that left their bound, which ended the last step. */
  private readonly released: Uint8Array;
  private readonly bounded: number[];
  private joints: Joint[] = [];
  private nextEvent = 0;
  private length: number;
  /** Time and number of steps from which steps are counted. */
  private readonly counted = { time: 0, steps: 0 };
  private readonly tolerance: number;
  private readonly fixedStep: number | undefined;

  /** Starts at time 0 from `initial`. */
  constructor(
    private readonly problem: DelayProblem,
    initial: Float64Array,
    { tolerance = 1e-6, fixedStep }: SolverOptions = {},
  ) {
    const { dimension, lagged, lag } = problem;
    const vector = () => new Float64Array(dimension);
    this.y = Float64Array.from(initial);
    this.stage = vector();
    this.next = vector();
    this.k = Array.from({ length: kStages }, vector);
    this.past = new Float64Array(lagged);
    this.held = new Uint8Array(dimension);
    this.released = new Uint8Array(dimension);
    this.bounded = Array.from({ length: dimension }, (_, i) => i).filter(
      (i) => Number.isFinite(this.lower(i)) || Number.isFinite(this.upper(i)),
    );
    this.history = new History(dimension, problem.before);
    this.tolerance = tolerance;
    this.fixedStep = fixedStep;
    this.length = fixedStep ?? lag / 100;
    this.joint(0);
  }

  /**
   * Solves up to `until`. `observe` gets each step once it is taken; it holds until the next. Throws RangeError where that takes
   * no end, or the derivative is not finite.
   */
  advance(until: number, observe?: (step: DenseStep) => void): void {
    while (this.time < until) {
      this.passJoints();
      this.beginStep();
      const step = this.attempt(this.nextStop(until));
      this.countStep();
      observe?.(step);
    }
  }

  private countStep(): void {
    const { counted, time, steps, problem } = this;
    if (time >= counted.time + problem.lag) {
      counted.time = time;
      counted.steps = steps;
    } else if (steps - counted.steps >= kMostSteps) {
      const reached = `${kMostSteps} steps from ${counted.time} on reach only ${time}, and the delay is ${problem.lag}`;
      throw new RangeError(`${reached}: the derivative is too fast for it. Take a shorter delay or slower changes`);
    }
  }

  /** Notes that a jump at `time` comes back a delay later. */
  private joint(time: number, depth = 0): void {
    if (depth >= kDepth) return;
    const at = time + this.problem.lag;
    const near = kSame * this.problem.lag;
    const same = this.joints.find((other) => Math.abs(other.time - at) <= near);
    if (same !== undefined) {
      same.depth = Math.min(same.depth, depth + 1);
      return;
    }
    this.joints.push({ time: at, depth: depth + 1 });
    this.joints.sort((a, b) => a.time - b.time);
  }

  /** Handles the events and joints of the time reached. */
  private passJoints(): void {
    const { events = [], event, lag } = this.problem;
    const near = kSame * lag;
    while (this.nextEvent < events.length && (events[this.nextEvent] as number) <= this.time + near) {
      event?.(this.nextEvent++, this.y);
      this.joint(this.time);
    }
    while (this.joints[0] !== undefined && this.joints[0].time <= this.time + near) {
      const [{ depth }] = this.joints.splice(0, 1) as [Joint];
      this.joint(this.time, depth);
    }
  }

  /** Latest end of the smooth piece that begins at the time reached. */
  private pieceEnd(): number {
    const { events = [], lag } = this.problem;
    return Math.min(
      this.time + lag,
      this.joints[0]?.time ?? Number.POSITIVE_INFINITY,
      events[this.nextEvent] ?? Number.POSITIVE_INFINITY,
    );
  }

  private nextStop(until: number): number {
    return Math.min(this.pieceEnd(), until);
  }

  /** Determines the side of levels that f is on, the derivative at the beginning, and which components are held at a bound. */
  private beginStep(): void {
    const { problem, past, k, y, time } = this;
    const end = this.pieceEnd();
    const middle = time + (end - time) / 2 - problem.lag;
    this.history.look(middle, middle, past);
    problem.begin?.(past, y);
    const first = k[0] as Float64Array;
    this.firstSlope();
    for (const i of this.bounded) {
      this.held[i] = this.released[i] === 1 ? kFree : this.boundAt(i, y[i] as number, first[i] as number);
      if (this.held[i] !== kFree) first[i] = 0;
    }
  }

  /** Computes the derivative at the time reached, on the side of what comes. */
  private firstSlope(): void {
    const { problem, time, y, past, k } = this;
    this.look(time, kInside * (this.pieceEnd() - time));
    problem.derivative(time, y, past, k[0] as Float64Array);
  }

  private boundAt(i: number, value: number, slope: number): number {
    if (value >= this.upper(i) && slope >= 0) return kAtUpper;
    if (value <= this.lower(i) && slope <= 0) return kAtLower;
    return kFree;
  }

  /** Writes the past at `time`; `aside` says on which side of it to look for a step. */
  private look(time: number, aside: number): void {
    const then = time - this.problem.lag;
    this.history.look(then, then + aside, this.past);
  }

  /** Takes one step that the error control accepts, as far as nothing happens within it. */
  private attempt(stop: number): DenseStep {
    const { problem, y, next, k, time } = this;
    const room = stop - time;
    for (let refused = 0; ; refused++) {
      let length = Math.min(this.length, room);
      // The rest is halved if a full step would leave a tiny one.
      if (length > 0.9 * room) length = room;
      else if (length > room / 2) length = room / 2;
      if (this.fixedStep !== undefined) length = Math.min(this.fixedStep, room);
      const error = this.stages(length);
      const usual = Math.min(5, Math.max(0.2, 0.9 * error ** -0.2));
      if (this.fixedStep !== undefined || error <= 1) {
        const step = this.history.take();
        step.set(time, length, y, next, k);
        if (length === room) step.end = stop;
        this.settle(step);
        if (this.fixedStep === undefined) {
          const tried = length === room && this.length > length ? this.length : length * usual;
          this.length = Math.min(tried, problem.lag);
        }
        return step;
      }
      if (refused >= kMostRefused || !(error < Number.POSITIVE_INFINITY)) {
        throw new RangeError(
          `the equations cannot be solved at ${time}: the derivative has no finite value near there`,
        );
      }
      this.length = length * usual;
    }
  }

  /** Computes all stages of a step of `length`; returns its error. */
  private stages(length: number): number {
    const { problem, y, stage, next, past, k, time, held } = this;
    const { dimension } = problem;
    for (let s = 1; s < kStages; s++) {
      const weights = kWeights[s] as readonly number[];
      const target = s === kStages - 1 ? next : stage;
      for (let i = 0; i < dimension; i++) {
        let sum = 0;
        for (let j = 0; j < s; j++) sum += (weights[j] as number) * ((k[j] as Float64Array)[i] as number);
        target[i] = (y[i] as number) + length * sum;
      }
      const node = kNodes[s] as number;
      const at = time + node * length;
      this.look(at, kInside * length * (node < 0.5 ? 1 : -1));
      const slope = k[s] as Float64Array;
      problem.derivative(at, target, past, slope);
      for (const i of this.bounded) if (held[i] !== kFree) slope[i] = 0;
    }
    let sum = 0;
    for (let i = 0; i < dimension; i++) {
      let error = 0;
      for (let s = 0; s < kStages; s++) error += (kError[s] as number) * ((k[s] as Float64Array)[i] as number);
      const size = Math.max(Math.abs(y[i] as number), Math.abs(next[i] as number));
      sum += ((length * error) / (this.tolerance * ((problem.scale[i] as number) + size))) ** 2;
    }
    return Math.max(1e-12, Math.sqrt(sum / dimension));
  }

  /** Takes the step, up to where a component reaches a bound or leaves it, and notes jumps that come back a delay later. */
  private settle(step: DenseStep): void {
    const { problem, y, released } = this;
    const departures = this.departures(step);
    const arrivals = this.bounded.flatMap((i) => this.arrival(step, i));
    const first = Math.min(...[...arrivals, ...departures].map(({ time }) => time));
    const end = Math.min(step.end, Math.max(first, step.begin + kLeast * problem.lag));
    if (end < step.end) this.joint(end);
    step.end = end;
    step.values(end, y);
    released.fill(0);
    for (const { component, time } of departures) if (time <= end) released[component] = 1;
    for (const { component, time, bound } of arrivals) if (time <= end) y[component] = bound;
    for (const i of this.bounded) y[i] = Math.min(this.upper(i), Math.max(this.lower(i), y[i] as number));
    this.crossings(step);
    this.history.push(step);
    this.time = end;
    this.steps++;
    this.history.forget(end - problem.lag);
  }

  /** Moments at which a free component goes through a bound. */
  private arrival(step: DenseStep, i: number): (Turn & { bound: number })[] {
    if (this.held[i] !== kFree) return [];
    const value = this.next[i] as number;
    const [low, high] = [this.lower(i), this.upper(i)];
    const bound = value < low ? low : high;
    const outward = value < low ? -1 : 1;
    const slight = kSlight * this.tolerance * ((this.problem.scale[i] as number) + Math.abs(bound));
    const within = (at: number) => outward * (at - bound) <= slight;
    if (within(value)) return [];
    const time = lastBefore(step.begin, step.end, (at) => within(step.value(i, at)));
    return [{ component: i, time, bound }];
  }

  private lower(i: number): number {
    return this.problem.lower?.[i] ?? Number.NEGATIVE_INFINITY;
  }

  private upper(i: number): number {
    return this.problem.upper?.[i] ?? Number.POSITIVE_INFINITY;
  }

  /** Moments at which held components are let go. */
  private departures(step: DenseStep): Turn[] {
    const { problem, held, stage } = this;
    const holding = this.bounded.filter((i) => held[i] !== kFree);
    if (holding.length === 0) return [];
    const slope = this.k[1] as Float64Array;
    const length = step.end - step.begin;
    const outward = (i: number, at: number): boolean => {
      step.values(at, stage);
      this.look(at, kInside * (step.begin + length / 2 - at));
      problem.derivative(at, stage, this.past, slope);
      return held[i] === kAtUpper ? (slope[i] as number) >= 0 : (slope[i] as number) <= 0;
    };
    return holding
      .filter((i) => !outward(i, step.end))
      .map((i) => ({ component: i, time: lastBefore(step.begin, step.end, (at) => outward(i, at)) }));
  }

  /** Notes levels that the step goes through. */
  private crossings(step: DenseStep): void {
    for (const [component, level] of this.problem.levels ?? []) {
      const above = (time: number) => step.value(component, time) > level;
      const length = step.end - step.begin;
      let from = step.begin;
      let side = above(from);
      for (const part of [0.25, 0.5, 0.75, 1]) {
        const to = part === 1 ? step.end : step.begin + part * length;
        const then = above(to);
        if (then !== side) this.joint(lastBefore(from, to, (at) => above(at) === side));
        from = to;
        side = then;
      }
    }
  }
}

/** Finds the time, to the last bits, at which `holds` turns from true, at `from`, to false, at `to`. */
function lastBefore(from: number, to: number, holds: (time: number) => boolean): number {
  let low = from;
  let high = to;
  for (let i = 0; i < 60; i++) {
    const middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    if (holds(middle)) low = middle;
    else high = middle;
  }
  return high;
}
