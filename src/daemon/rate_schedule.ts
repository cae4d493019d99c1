/** Changes rates of a switch's egress queues at their times (`changes` of its file). */
import type { RateChange } from "../device/file/types.js";

/** Longest wait of a timer, ms. */
const kLongestWait = 2 ** 31 - 1;

export class RateSchedule {
  #began: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #changes: readonly RateChange[] = [];

  /**
   * @param now Returns the time, ns.
   * @param due Called when rates have another value.
   */
  constructor(
    private readonly now: () => number,
    private readonly due: (changes: readonly RateChange[]) => void,
  ) {}

  /** Time since it began, ns; 0 before. */
  get since(): number {
    return this.#began === undefined ? 0 : this.now() - this.#began;
  }

  /** Follows these changes from here on, in place of earlier ones. */
  begin(changes: readonly RateChange[]): void {
    this.#began = this.now();
    this.#changes = changes;
    this.#wait(0);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** @param after Changes at that time, ns, and before have been made. */
  #wait(after: number): void {
    clearTimeout(this.#timer);
    const next = this.#changes.find(({ at }) => at > after)?.at;
    if (next === undefined) return;
    this.#timer = setTimeout(
      () => {
        if (this.since < next) return this.#wait(after);
        const made = this.since;
        this.due(this.#changes.filter(({ at }) => at > after && at <= made));
        this.#wait(made);
      },
      Math.min(kLongestWait, Math.ceil(Math.max(0, next - this.since) / 1e6)),
    );
    this.#timer.unref();
  }
}
