/** When rates of a switch's egress queues change (`changes` of its file), and which of them hold. */
import type { RateChange } from "../device/file/types.js";

/** Longest wait of a timer, ms. */
const kLongestWait = 2 ** 31 - 1;

export class RateSchedule {
  #began: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #changes: readonly RateChange[] = [];

  /**
   * @param now ns.
   * @param due Rates have another value now.
   */
  constructor(
    private readonly now: () => number,
    private readonly due: (changes: readonly RateChange[]) => void,
  ) {}

  /** ns; 0 before it begins. */
  get since(): number {
    return this.#began === undefined ? 0 : this.now() - this.#began;
  }

  /** From here on, in place of what was to come. */
  begin(changes: readonly RateChange[]): void {
    this.#began = this.now();
    this.#changes = changes;
    this.#wait(0);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** @param after Those at that time, ns, and before have been made. */
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
