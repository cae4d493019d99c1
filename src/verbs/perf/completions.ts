/** Waits for completions: polls for a moment, because a wake-up takes longer than a round trip, then sleeps. */

import { setImmediate as turn } from "node:timers/promises";
import { WeirError } from "../../base/error.js";
import type { Device } from "../device.js";
import type { ProtectionDomain } from "../protection_domain.js";
import type { CompletionQueue, QueuePair, WorkCompletion } from "../queue_pair.js";
import type { SendRequest, Status } from "../types.js";

const kPollMs = 0.1;
/** Time after which polling gives way to the event loop: signals, connection management. */
const kTurnMs = 10;
/** Interval at which a sleeper looks whether the device is still well. */
const kSleepMs = 500;

const kHints: Partial<Record<Status, string>> = {
  wr_flush_err: "its own messages may say why; the options of the two sides must go together",
  retry_exc_err: "it does not answer any more: is it still there, and is the path not too lossy?",
  rnr_retry_exc_err: "it posts no receives: use the same test on both sides",
  rem_access_err: "its memory is smaller than this, or not for this test: use the same test and -s or -a on both sides",
  rem_inv_req_err: "use the same test and -s or -a on both sides",
  loc_len_err: "it sent more than is expected: use the same -s or -a on both sides",
};

/** Thrown when a work request failed. */
export class CompletionError extends WeirError {
  constructor(readonly status: Status) {
    super(status === "wr_flush_err" ? "the peer closed the connection" : `the peer or the path failed: ${status}`, {
      hint: kHints[status],
    });
    this.name = "CompletionError";
  }
}

/** Reads one completion queue, whose callback it takes. */
export class Completions {
  #found: WorkCompletion[] = [];
  /** Number of completions in #found, with `times` of each. */
  #count = 0;
  #wake: () => void = () => {};
  #lastTurn = 0;

  /** `signal` ends every wait. */
  constructor(
    private readonly device: Device,
    private readonly queue: CompletionQueue,
    private readonly signal: AbortSignal,
  ) {
    queue.onCompletion((completion) => {
      this.#found.push(completion);
      this.#count += completion.times;
      this.#wake();
    });
    signal.addEventListener("abort", () => this.#wake(), { once: true });
  }

  /**
   * Returns completions since the last call. Waits for `least`, but not past the time `until` (performance.now()). @throws
   * CompletionError for the first one that failed.
   */
  async take(until = Number.POSITIVE_INFINITY, least = 1): Promise<WorkCompletion[]> {
    // Polling is worth it while packets come and go.
    let moved = performance.now();
    this.queue.poll(); // It calls back, like progress().
    for (;;) {
      if (performance.now() - this.#lastTurn > kTurnMs) {
        await turn();
        this.#lastTurn = performance.now();
      }
      this.signal.throwIfAborted();
      const busy = this.#count < least && this.device.progress();
      const now = performance.now();
      if (busy) moved = now;
      if (this.#count >= least || now >= until) break;
      if (now - moved < kPollMs) continue;
      this.device.requireOpen();
      await this.#sleep(Math.min(until - now, kSleepMs));
      this.#lastTurn = performance.now();
    }
    const found = this.#found;
    this.#found = [];
    this.#count = 0;
    for (const { status } of found) if (status !== "success") throw new CompletionError(status);
    return found;
  }

  /** Returns the next completion, of a queue that has one at a time. */
  async next(): Promise<WorkCompletion> {
    const [first] = await this.take();
    return first as WorkCompletion;
  }

  #sleep(ms: number): Promise<void> {
    this.device.rest();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** A queue pair with few messages, sent and received one at a time. */
export class Channel {
  readonly queuePair: QueuePair;
  readonly received: Completions;
  private readonly sent: Completions;

  /** Makes a queue pair in the state init. @param depth Depth of sends and of receives. */
  constructor(device: Device, domain: ProtectionDomain, depth: number, signal: AbortSignal) {
    const sendCompletions = device.createCompletionQueue();
    const receiveCompletions = device.createCompletionQueue();
    this.sent = new Completions(device, sendCompletions, signal);
    this.received = new Completions(device, receiveCompletions, signal);
    const depths = { sendDepth: depth, receiveDepth: depth };
    this.queuePair = domain.createQueuePair({ sendCompletions, receiveCompletions, ...depths });
    this.queuePair.modify("init");
  }

  /** Sends one message; returns when it is complete. */
  async send(request: SendRequest): Promise<void> {
    this.queuePair.postSend(request);
    await this.sent.next();
  }
}
