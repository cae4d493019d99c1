/**
 * The steps of a solution that a delay still reaches back to, oldest first. Steps that no longer matter are used again.
 *
 * Steps meet at places where the solution may jump or bend. So that a look at such a place takes the right side of it, a step is
 * looked for somewhere within an interval, and then evaluated where it was asked for.
 */
import { DenseStep } from "./dormand_prince.js";

export class History {
  private readonly steps: DenseStep[] = [];
  private readonly free: DenseStep[] = [];
  /** Index of the step that was found last: most looks go forward in time. */
  private cursor = 0;

  /** @param before Writes the solution before the first step: its first `out.length` components at a time. */
  constructor(
    private readonly dimension: number,
    private readonly before: (time: number, out: Float64Array) => void,
  ) {}

  /** Returns a step to be set and then given to push(). */
  take(): DenseStep {
    return this.free.pop() ?? new DenseStep(this.dimension);
  }

  push(step: DenseStep): void {
    this.steps.push(step);
  }

  /** Forgets steps that ended before `time`. */
  forget(time: number): void {
    let old = 0;
    while (old < this.steps.length - 1 && (this.steps[old] as DenseStep).end < time) old++;
    // Steps are removed in bulk: to shift one at a time would move all of the others.
    if (old < 32) return;
    this.free.push(...this.steps.splice(0, old));
    this.cursor = Math.max(0, this.cursor - old);
  }

  /** Writes the first `out.length` components at `time`, by the step that `within` lies in. */
  look(time: number, within: number, out: Float64Array): void {
    const { steps } = this;
    const first = steps[0];
    if (first === undefined || within < first.begin) {
      this.before(time, out);
      return;
    }
    let i = Math.min(this.cursor, steps.length - 1);
    while (i > 0 && (steps[i] as DenseStep).begin > within) i--;
    while (i < steps.length - 1 && (steps[i] as DenseStep).end < within) i++;
    this.cursor = i;
    (steps[i] as DenseStep).values(time, out);
  }
}
