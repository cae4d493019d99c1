/** Where completions arrive: polled, awaited, or called back for. */
import type { DeviceCore, WorkCompletion } from "./types.js";

export class CompletionQueue implements AsyncIterable<WorkCompletion> {
  #waiting: WorkCompletion[] = [];
  #wakes: (() => void)[] = [];
  #callback: ((completion: WorkCompletion) => void) | undefined;

  /** Use Device.createCompletionQueue(). */
  constructor(private readonly device: DeviceCore) {}

  /** Up to `most` completions that have come, oldest first; does not wait. */
  poll(most = Number.POSITIVE_INFINITY): WorkCompletion[] {
    if (this.#waiting.length < most) this.device.drain();
    if (this.#waiting.length <= most) {
      const all = this.#waiting;
      this.#waiting = [];
      return all;
    }
    return this.#waiting.splice(0, most);
  }

  /**
   * Calls back for each completion from now on, those that wait included, instead of keeping it; undefined: keeps them again.
   * What the callback throws is an uncaught exception; later completions are called back for all the same.
   */
  onCompletion(callback: ((completion: WorkCompletion) => void) | undefined): void {
    // To where older ones are: these come first.
    this.device.drain();
    this.#callback = callback;
    if (callback !== undefined) for (const completion of this.#waiting.splice(0)) callback(completion);
  }

  /** The next completion. @throws WeirError when the device is closed or fails while waiting. */
  async next(): Promise<WorkCompletion> {
    for (;;) {
      const completion = this.#take();
      if (completion !== undefined) return completion;
      this.device.requireOpen();
      await this.#arrival();
    }
  }

  /** Ends when the device is closed. @throws WeirError when it fails. */
  async *[Symbol.asyncIterator](): AsyncGenerator<WorkCompletion, void, undefined> {
    for (;;) {
      // One at a time: whoever leaves the loop leaves the others in the queue.
      const completion = this.#take();
      if (completion !== undefined) {
        yield completion;
        continue;
      }
      if (this.device.closed) return;
      this.device.requireOpen();
      await this.#arrival();
    }
  }

  /** For the device. */
  push(completion: WorkCompletion): void {
    if (this.#callback === undefined) {
      this.#waiting.push(completion);
      this.wake();
    } else {
      this.#callback(completion);
    }
  }

  /** For the device. */
  wake(): void {
    for (const wake of this.#wakes.splice(0)) wake();
  }

  #take(): WorkCompletion | undefined {
    if (this.#waiting.length === 0) this.device.drain();
    return this.#waiting.shift();
  }

  #arrival(): Promise<void> {
    return new Promise((resolve) => this.#wakes.push(resolve));
  }
}
