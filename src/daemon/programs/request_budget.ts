/**
 * Limits the rate at which a program's requests are answered: each costs the daemon's main thread and the NIC's a moment, which
 * belongs to all. A program that sets up many queue pairs does not feel it, one that asks without end is slowed down.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

/** Requests that may come at once, and in each second from then on; a queue pair takes five from its beginning to its end. */
const kBurst = 8192;
const kPerSecond = 1000;
/** Requests between two turns in which the main thread does everything else. */
const kOfTurn = 8;
const kPauseMs = 20;

export class RequestBudget {
  #tokens = kBurst;
  #since: number;
  #turn = 0;

  constructor(private readonly now: () => number = () => performance.now()) {
    this.#since = now();
  }

  /** Resolves when the next request may be looked at. */
  async next(): Promise<void> {
    if (++this.#turn % kOfTurn === 0) await nextTurn();
    this.#refill();
    while (this.#tokens < 1) {
      await sleep(kPauseMs);
      this.#refill();
    }
    this.#tokens--;
  }

  #refill(): void {
    const now = this.now();
    this.#tokens = Math.min(kBurst, this.#tokens + ((now - this.#since) * kPerSecond) / 1000);
    this.#since = now;
  }
}
