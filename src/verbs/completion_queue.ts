/** Where completions arrive: polled, awaited, or called back for. */
import type { Device } from "./device.js";
import type { WorkCompletion } from "./work.js";

export class CompletionQueue implements AsyncIterable<WorkCompletion> {
  #waiting: WorkCompletion[] = [];
  #wake: (() => void) | undefined;
  #callback: ((completion: WorkCompletion) => void) | undefined;

  /** Use Device.createCompletionQueue(). */
  constructor(private readonly device: Device) {}

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

  /** Calls back for each completion from now on, instead of keeping it; undefined: keeps them again. */
  onCompletion(callback: ((completion: WorkCompletion) => void) | undefined): void {
    this.#callback = callback;
    if (callback !== undefined) for (const completion of this.poll()) callback(completion);
  }

  /** The next completion. @throws WeirError when the device is closed while waiting. */
  async next(): Promise<WorkCompletion> {
    for (;;) {
      const [completion] = this.poll(1);
      if (completion !== undefined) return completion;
      this.device.requireOpen();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Ends when the device is closed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<WorkCompletion, void, undefined> {
    for (;;) {
      for (const completion of this.poll()) yield completion;
      if (this.device.closed) return;
      if (this.#waiting.length > 0) continue;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
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
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
