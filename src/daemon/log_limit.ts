/** Limits how often a daemon says the same: a neighbour on the wire or a program must not fill the disk that the log is on. */

/** Lines of a kind that may come at once, after some time without. */
const kBurst = 60;
/** Interval of lines of a kind beyond those, ms. */
const kEveryMs = 3000;
/** Kinds that are kept apart; messages are texts of Weir's own, so that there are far fewer. */
const kMostKinds = 1000;

interface Kind {
  /** Lines that may still come at `at`; as many as the burst at most. */
  left: number;
  at: number;
  leftOut: number;
}

export class LogLimit {
  readonly #kinds = new Map<string, Kind>();

  /** Returns undefined if the line is to be left out, else how many of its kind were left out before it. @param now ms */
  pass(kind: string, now: number): number | undefined {
    const known = this.#kinds.get(kind) ?? { left: kBurst, at: now, leftOut: 0 };
    known.left = Math.min(kBurst, known.left + (now - known.at) / kEveryMs);
    known.at = now;
    this.#kinds.delete(kind);
    this.#kinds.set(kind, known);
    for (const [oldest] of this.#kinds) {
      if (this.#kinds.size <= kMostKinds) break;
      this.#kinds.delete(oldest);
    }
    if (known.left < 1) {
      known.leftOut++;
      return undefined;
    }
    known.left--;
    const leftOut = known.leftOut;
    known.leftOut = 0;
    return leftOut;
  }
}
