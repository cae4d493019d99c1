/** Sends a message until it is answered, or as often as agreed. */
import type { Clock } from "./link.js";

/** Bounds for intervals, ms: peers choose some of them, and may be unreasonable. */
const kShortestMs = 10;
/** Linux asks for 69 s with MRA. */
const kLongestMs = 70_000;

/** A time code of IBTA, 4.096 us x 2^code, in ms and within reason. */
export function timeOfCode(code: number): number {
  return Math.min(Math.max(0.004096 * 2 ** code, kShortestMs), kLongestMs);
}

export class Retransmission {
  #cancel = () => {};
  #expired = () => {};

  constructor(private readonly clock: Clock) {}

  /** Calls `send` now and every `interval` ms, 1 + `retries` times in all; `giveUp` after the last interval. */
  start(interval: number, retries: number, send: (isAgain: boolean) => void, giveUp: () => void): void {
    const attempt = (left: number) => {
      this.#expired = () => (left === 0 ? giveUp() : attempt(left - 1));
      this.postpone(interval);
      send(left < retries);
    };
    attempt(retries);
  }

  /** Puts the next step off until `ms` from now: a timer of its own, or what a peer asks for with MRA. */
  postpone(ms: number): void {
    this.#cancel();
    this.#cancel = this.clock.after(ms, this.#expired);
  }

  stop(): void {
    this.#cancel();
  }
}
