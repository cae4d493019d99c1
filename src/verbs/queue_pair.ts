/** Queue pairs, reliable connections (RC) and unreliable datagrams (UD), and the queues for their completions. */

import { asWeirError, WeirError } from "../base/error.js";
import { pathTo } from "../device/path.js";
import { kWorkCommand, type NativeAddon, type VerbsWorker } from "../native/types.js";
import { AddressHandle } from "./address_handle.js";
import type {
  Access,
  Completion,
  QueuePairAttributes,
  ReceiveRequest,
  Repeated,
  SendRequest,
  State,
  Status,
} from "./types.js";
import { accessBits } from "./types.js";
import { WorkBuffer } from "./work.js";

/** The part of a device that queue pairs, completion queues and memory regions need. */
export interface DeviceCore {
  readonly native: { addon: NativeAddon; worker: VerbsWorker };
  /** Buffer for work requests on their way down. */
  readonly work: WorkBuffer;
  readonly mac: number;
  readonly vlan: number | undefined;
  readonly largestPathMtu: number;
  readonly defaults: Pick<QueuePairAttributes, "pathMtu" | "priority" | "dscp">;
  readonly closed: boolean;
  readonly failed: boolean;
  readonly works: boolean;
  /** @throws WeirError when it is closed or has failed. */
  requireOpen(): void;
  sourceFor(address: string): string;
  /** Brings completions to their queues. */
  drain(): void;
  /** Notices when the poll thread has failed. */
  readRecords(): void;
  attach(pair: QueuePair): void;
  detach(pair: QueuePair): void;
}

/** A completion, with its queue pair. */
export interface WorkCompletion extends Completion {
  queuePair: QueuePair;
}

export interface CompletionQueueOptions {
  /**
   * Joins completions in a row that are all the same into one, with their number in `times`: of many short messages each would
   * cost more than its message. Default false.
   */
  join?: boolean;
}

/** A queue at which completions arrive: polled, awaited, or called back for. */
export class CompletionQueue implements AsyncIterable<WorkCompletion> {
  #waiting: WorkCompletion[] = [];
  #wakes: (() => void)[] = [];
  #callback: ((completion: WorkCompletion) => void) | undefined;
  /** Says whether it joins; queue pairs read it. */
  readonly joins: boolean;

  /** Use Device.createCompletionQueue(). */
  constructor(
    private readonly device: DeviceCore,
    { join = false }: CompletionQueueOptions,
  ) {
    this.joins = join;
  }

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
   * Calls back for each completion from now on, those that wait included, instead of keeping it; undefined: keeps them again. An
   * error that the callback throws is an uncaught exception; later completions are called back for all the same.
   */
  onCompletion(callback: ((completion: WorkCompletion) => void) | undefined): void {
    // Older completions come first, to where they went so far.
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
      // They are taken one at a time: a caller that leaves the loop leaves the others in the queue.
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

  /** Adds a completion; the device calls this. */
  push(completion: WorkCompletion): void {
    if (this.#callback === undefined) {
      this.#waiting.push(completion);
      this.wake();
    } else {
      this.#callback(completion);
    }
  }

  /** Wakes waiting callers; the device calls this. */
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

export interface QueuePairOptions {
  /** Type of the queue pair. Default "rc". */
  type?: "rc" | "ud";
  sendCompletions: CompletionQueue;
  /** Queue for completions of receives. Default: the same as for sends. */
  receiveCompletions?: CompletionQueue;
  /** Most work requests at a time, 1 to 32768. Default 128. */
  sendDepth?: number;
  receiveDepth?: number;
}

const kMostDepth = 32_768;
/** Attributes that are numbers: their name in the native core, default, and bounds, inclusive. */
const kNumbers = {
  remoteQpn: ["remote_qpn", 0, 0, 0xff_ffff],
  sendPsn: ["send_psn", 0, 0, 0xff_ffff],
  receivePsn: ["receive_psn", 0, 0, 0xff_ffff],
  timeout: ["timeout", 14, 0, 31],
  retryCount: ["retry_count", 7, 0, 7],
  rnrRetry: ["rnr_retry", 7, 0, 7],
  minRnrTimer: ["min_rnr_timer", 12, 0, 31],
  maxRdAtomic: ["max_rd_atomic", 16, 1, 128],
  maxDestRdAtomic: ["max_dest_rd_atomic", 16, 1, 128],
  window: ["window", 0, 4, 65_536],
  partitionKey: ["partition_key", 0xffff, 0, 0xffff],
  queueKey: ["queue_key", 0, 0, 0xffff_ffff],
  rateCap: ["rate_cap", 0, 0, Number.MAX_SAFE_INTEGER],
} as const;
type NativeNumbers = Record<(typeof kNumbers)[keyof typeof kNumbers][0], number>;
const kDefaultAccess: readonly Access[] = ["remote_write", "remote_read", "remote_atomic"];

export class QueuePair {
  readonly type: "rc" | "ud";
  readonly qpn: number;
  readonly sendDepth: number;
  readonly receiveDepth: number;
  readonly sendCompletions: CompletionQueue;
  readonly receiveCompletions: CompletionQueue;
  #state: State = "reset";
  /** Work requests that are posted and not done with. */
  readonly #posted = { send: 0, receive: 0 };
  /** Handles of datagrams that are posted: they must not be given back yet. */
  readonly #ways: AddressHandle[] = [];
  #destroyed = false;
  #attributes: Partial<QueuePairAttributes> = {};
  #onError: ((status: Status) => void) | undefined;

  /** Use ProtectionDomain.createQueuePair(). */
  constructor(
    private readonly device: DeviceCore,
    private readonly domain: number,
    { type = "rc", sendCompletions, receiveCompletions, sendDepth = 128, receiveDepth = 128 }: QueuePairOptions,
  ) {
    within("sendDepth", sendDepth, 1, kMostDepth);
    within("receiveDepth", receiveDepth, 1, kMostDepth);
    this.type = type;
    this.sendCompletions = sendCompletions;
    this.receiveCompletions = receiveCompletions ?? sendCompletions;
    this.sendDepth = sendDepth;
    this.receiveDepth = receiveDepth;
    const depths = { send_depth: sendDepth, receive_depth: receiveDepth };
    this.qpn = asWeirError(() => device.native.worker.createQueuePair(0, { datagram: type === "ud", ...depths }));
    device.attach(this);
  }

  get state(): State {
    return this.device.failed ? "error" : this.#state;
  }

  /** Work requests that may be posted now. */
  get sendRoom(): number {
    return this.sendDepth - this.#posted.send;
  }
  get receiveRoom(): number {
    return this.receiveDepth - this.#posted.receive;
  }

  /**
   * Goes to another state: reset, init, rtr, rts in this order; reset and error from anywhere. Attributes given once stay.
   * @throws WeirError for an illegal transition or an attribute out of its range.
   */
  modify(state: State, attributes: Partial<QueuePairAttributes> = {}): void {
    this.#requireAlive();
    const given = { ...this.#attributes, ...attributes };
    const a = { access: kDefaultAccess, recovery: "go-back-n" as const, ...this.device.defaults, ...given };
    const numbers: Record<string, number> = {};
    for (const [name, [native, standard, least, most]] of Object.entries(kNumbers)) {
      const value = a[name as keyof typeof kNumbers];
      numbers[native] = value === undefined ? standard : within(name, value, least, most);
    }
    within("priority", a.priority, 0, 7);
    within("dscp", a.dscp, 0, 63);
    if (![256, 512, 1024, 2048, 4096].includes(a.pathMtu) || a.pathMtu > this.device.largestPathMtu) {
      throw new WeirError(`pathMtu: ${a.pathMtu} is not possible here`, {
        field: "pathMtu",
        hint: `256, 512, 1024, 2048 or 4096, and at most ${this.device.largestPathMtu} on this interface`,
      });
    }
    if (state === "rtr" && this.type === "rc" && a.route === undefined) {
      throw new WeirError("route: a reliable connection needs to know its peer", { field: "route" });
    }
    asWeirError(() =>
      this.device.native.worker.modifyQueuePair(0, this.qpn, {
        state,
        domain: this.domain,
        ...(numbers as NativeNumbers),
        access: accessBits(a.access),
        path_mtu: a.pathMtu,
        recovery: a.recovery,
        path: pathTo(this.device, a.route, a.dscp, a.priority, this.qpn),
        priority: a.priority,
      }),
    );
    this.#attributes = given;
    this.#state = state;
  }

  /**
   * @throws WeirError when the queue is full or the state forbids it; RangeError for a slice outside of its region, or a message
   * of more than 1 GiB. Of several requests those before a wrong one may have been posted.
   */
  postSend(...requests: SendRequest[]): void {
    this.#requireAlive();
    if (this.#state !== "rts" && this.#state !== "error") {
      throw new WeirError(`a queue pair in state ${this.#state} cannot send`, { hint: "it has to be in rts" });
    }
    if (timesOfAll(requests) > this.sendRoom) throw full("send", this.sendDepth);
    const ways = this.type === "ud" ? requests.flatMap((request) => this.#waysOf(request)) : [];
    const write = (buffer: WorkBuffer, at: number, request: SendRequest, times: number) =>
      buffer.writeSend(at, this.qpn, request, times);
    this.#post("send", requests, write, (from, to) => this.#ways.push(...ways.slice(from, to)));
  }

  /** Posts receives in the same way; from init on. */
  postReceive(...requests: ReceiveRequest[]): void {
    this.#requireAlive();
    if (this.#state === "reset") {
      throw new WeirError("a queue pair in state reset cannot receive", { hint: "it has to be in init, rtr or rts" });
    }
    if (timesOfAll(requests) > this.receiveRoom) throw full("receive", this.receiveDepth);
    this.#post("receive", requests, (buffer, at, request, times) => buffer.writeReceive(at, this.qpn, request, times));
  }

  /** Called once when the queue pair fails; "success" when the peer or a received request is to blame. */
  onError(callback: (status: Status) => void): void {
    this.#onError = callback;
  }

  /** Destroys it; work that is not complete is forgotten. Idempotent. */
  destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    this.#state = "reset";
    this.device.detach(this);
    if (this.device.works) this.device.native.worker.destroyQueuePair(0, this.qpn);
  }

  /** Tells the device whether it takes completions of receives, or of sends, joined. */
  joins(receive: boolean): boolean {
    return (receive ? this.receiveCompletions : this.sendCompletions).joins;
  }

  /** Takes a completion; the device calls this. */
  take(completion: WorkCompletion, receive: boolean, retired: number): void {
    if (completion.status !== "success" || retired === 0) this.#fail(completion.status);
    if (retired === 0) return;
    this.#posted[receive ? "receive" : "send"] -= retired;
    if (!receive) this.#ways.splice(0, retired);
    (receive ? this.receiveCompletions : this.sendCompletions).push(completion);
  }

  /**
   * Handles of a datagram's destination, one for each of its times. @throws WeirError for a request that is no datagram, or has
   * no destination that there is.
   */
  #waysOf(request: SendRequest): AddressHandle[] {
    if (request.opcode !== "send" && request.opcode !== "send_with_imm") {
      throw new WeirError(`opcode: a datagram queue pair has no ${request.opcode}`, {
        field: "opcode",
        hint: "send or send_with_imm",
      });
    }
    if (request.to === undefined) throw new WeirError("to: a datagram needs a destination", { field: "to" });
    const { address } = request.to;
    if (address instanceof AddressHandle && address.isOf(this.device.native.worker)) {
      return new Array(request.times ?? 1).fill(address);
    }
    throw new WeirError("to.address: no address handle of this device, or one that was destroyed", {
      field: "to.address",
      hint: "make one: await device.createAddressHandle(address)",
    });
  }

  #fail(status: Status): void {
    if (this.#state === "rtr" || this.#state === "rts") this.#state = "error";
    const callback = this.#onError;
    this.#onError = undefined;
    callback?.(status);
  }

  #post<T extends Repeated>(
    which: "send" | "receive",
    requests: readonly T[],
    write: (buffer: WorkBuffer, at: number, request: T, times: number) => void,
    onPosted: (from: number, to: number) => void = () => {},
  ): void {
    const { work, native } = this.device;
    let posted = 0;
    for (let next = 0; next < requests.length; ) {
      let count = 0;
      // A request that comes several times in a row is written once.
      for (; count < WorkBuffer.kRequests && next < requests.length; count++) {
        const request = requests[next] as T;
        let times = 0;
        do times += request.times ?? 1;
        while (requests[++next] === request);
        write(work, count, request, times);
      }
      for (let taken = 0; taken < count; ) {
        const words = taken === 0 ? work.words : work.words.subarray(taken * kWorkCommand.words);
        // A full ring is emptied at the worker's next turn.
        const end = taken + native.worker.post(0, words, count - taken);
        if (end === taken) this.device.readRecords();
        const before = posted;
        while (taken < end) posted += work.times(taken++);
        onPosted(before, posted);
        this.#posted[which] += posted - before;
        this.device.requireOpen();
      }
    }
  }

  #requireAlive(): void {
    this.device.requireOpen();
    if (this.#destroyed) throw new WeirError("the queue pair was destroyed");
  }
}

/** @throws WeirError for a number of times that cannot be. */
function timesOfAll(requests: readonly Repeated[]): number {
  let all = 0;
  for (const { times = 1 } of requests) all += times === 1 ? 1 : within("times", times, 1, kMostDepth);
  return all;
}

function full(which: "send" | "receive", depth: number): WeirError {
  return new WeirError(`the ${which} queue is full: it holds ${depth} work requests`, {
    hint: `wait for completions, or give the queue pair a larger ${which}Depth`,
  });
}

/** @throws WeirError unless the value is within its bounds. */
function within(field: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new WeirError(`${field}: ${value} is not an integer between ${least} and ${most}`, { field });
}
