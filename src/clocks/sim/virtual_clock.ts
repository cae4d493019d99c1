/** Timers of virtual time, for what runs beside the simulation. */
import type { Clock } from "../../wire/cm/link.js";

const kNsPerMs = 1e6;

interface Timer {
  /** Virtual ns. */
  at: number;
  action(): void;
}

export class VirtualClock implements Clock {
  #now = 0;
  /** In the order in which they are due; those of one time as they were set. */
  readonly #timers: Timer[] = [];

  /** When the next timer is due, virtual ns. */
  get due(): number {
    return this.#timers[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  now(): number {
    return this.#now / kNsPerMs;
  }

  after(ms: number, action: () => void): () => void {
    // Time passes between two timers, however short they are.
    const timer = { at: this.#now + Math.max(1, Math.ceil(ms * kNsPerMs)), action };
    const later = this.#timers.findIndex(({ at }) => at > timer.at);
    this.#timers.splice(later < 0 ? this.#timers.length : later, 0, timer);
    return () => {
      const index = this.#timers.indexOf(timer);
      if (index >= 0) this.#timers.splice(index, 1);
    };
  }

  /** It is `now`, virtual ns: runs one timer that is due. @returns whether there was one. */
  advance(now: number): boolean {
    this.#now = now;
    if (this.due > now) return false;
    this.#timers.shift()?.action();
    return true;
  }
}
