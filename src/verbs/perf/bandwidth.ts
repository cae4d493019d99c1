/** Bandwidth: the client keeps every queue pair's send queue full, and counts. */
import type { SendRequest } from "../types.js";
import type { PerfTest } from "./options.js";
import type { Session } from "./session.js";
import { BandwidthMarks, type BandwidthSample, SampleWindow } from "./statistics.js";

/** Messages up to this size complete in groups, as in perftest: a completion each would cost more than the message. */
const kGroupedBytes = 8192;
const kMostInGroup = 32;
/** Time, ms, for which a rate limit makes good after a pause. */
const kBurstMs = 1;
/** Interval at which the receiver looks whether the sender has ended. */
const kLookMs = 50;
const kNever = new Promise<never>(() => {});

const kOpcodes = { "write-bw": "rdma_write", "read-bw": "rdma_read", "send-bw": "send" } as const;
export type BandwidthTest = Extract<PerfTest, `${string}-bw`>;

/** Moves messages of `size` bytes, `options.iterations` for each queue pair or for `options.seconds`. */
export async function sendMessages(session: Session, test: BandwidthTest, size: number): Promise<BandwidthSample> {
  const { queuePairs, sent, options } = session;
  const { depth, seconds, rate } = options;
  const each = seconds === undefined ? options.iterations : Number.POSITIVE_INFINITY;
  const total = each * queuePairs.length;
  const group = size > kGroupedBytes ? 1 : Math.max(1, Math.min(kMostInGroup, Math.floor(depth / 4)));
  const posted = new Array<number>(queuePairs.length).fill(0);
  const completed = new Array<number>(queuePairs.length).fill(0);
  const opcode = kOpcodes[test];
  const pace = new Pace(rate === undefined ? Number.POSITIVE_INFINITY : rate / 8000 / size);
  const begin = performance.now();
  const marks = new BandwidthMarks(total);
  const window = new SampleWindow(begin, seconds);
  let nPosted = 0;
  let nCompleted = 0;
  let now = begin;

  const requests = queuePairs.map((_, index) => {
    const base = { id: index, local: session.outbound(index, size) };
    const message = opcode === "send" ? { ...base, opcode } : { ...base, opcode, remote: session.remoteMemory(index) };
    return new Groups(message, group, each);
  });

  while (nCompleted < total && now < window.end) {
    let held = false;
    for (const [index, queuePair] of queuePairs.entries()) {
      const first = (posted[index] as number) + 1;
      const room = Math.min(each, (completed[index] as number) + depth) - first + 1;
      const count = pace.take(room, now);
      held ||= count < room;
      if (count === 0) continue;
      const last = first + count - 1;
      queuePair.postSend(...(requests[index] as Groups).between(first, last));
      marks.posted(nPosted, nPosted + count, now);
      nPosted += count;
      posted[index] = last;
    }
    // A queue that is a quarter empty is early enough: each turn of this loop costs more than a message.
    const enough = Math.min(depth / 4, nPosted - nCompleted) / group;
    const found = held
      ? await sent.take(Math.min(pace.next, window.end))
      : await sent.take(window.end, Math.max(1, Math.floor(enough)));
    now = performance.now();
    for (const { id: index, times } of found) {
      const before = completed[index] as number;
      const after = Math.min(each, before + group * times);
      completed[index] = after;
      marks.completed(nCompleted, nCompleted + after - before, now);
      nCompleted += after - before;
    }
    window.count(nCompleted, now);
  }
  if (seconds !== undefined) return window.sample();
  return { messages: nCompleted, time: now - begin, peak: marks.peak() };
}

/** The messages of a queue pair, from number 1 on. The last one of each group, and number `most`, complete for those before. */
class Groups {
  readonly #told: SendRequest;
  /** Requests that do not complete, by their number. */
  readonly #untold: SendRequest[];

  constructor(
    message: SendRequest,
    readonly group: number,
    readonly most: number,
  ) {
    this.#told = message;
    this.#untold = Array.from({ length: group }, (_, times) => ({ ...message, signaled: false, times }));
  }

  between(first: number, last: number): SendRequest[] {
    if (this.group === 1) return [{ ...this.#told, times: last - first + 1 }];
    const requests: SendRequest[] = [];
    for (let number = first; number <= last; ) {
      const end = Math.min(this.most, Math.ceil(number / this.group) * this.group);
      const untold = Math.min(end - 1, last) - number + 1;
      if (untold > 0) requests.push(this.#untold[untold] as SendRequest);
      if (end <= last) requests.push(this.#told);
      number = end + 1;
    }
    return requests;
  }
}

/** Sends and receives an equal number at a time; for a given time, receives as long as it sends. */
export async function exchangeMessages(
  session: Session,
  size: number,
): Promise<{ sent: BandwidthSample; received: BandwidthSample }> {
  const { iterations, seconds, qps } = session.options;
  const sending = sendMessages(session, "send-bw", size);
  const receiving =
    seconds === undefined ? receiveMessages(session, kNever, iterations * qps) : receiveMessages(session, sending);
  const [sent, received] = await Promise.all([sending, receiving]);
  return { sent, received };
}

/** Takes messages until there are `most`, or `ended` settles; measures from the first to the last one. */
export async function receiveMessages(
  session: Session,
  ended: Promise<unknown>,
  most = Number.POSITIVE_INFINITY,
): Promise<BandwidthSample> {
  let over = false;
  const end = () => {
    over = true;
  };
  ended.then(end, end);
  let messages = 0;
  let first = 0;
  let last = 0;
  const used = new Uint32Array(session.queuePairs.length);
  while (messages < most) {
    const lastLook = over;
    const found = await session.received.take(lastLook ? 0 : performance.now() + kLookMs);
    // Messages that the sender knows to have arrived are complete before its next message on the control connection is.
    if (found.length === 0 && lastLook) break;
    if (found.length === 0) continue;
    last = performance.now();
    if (messages === 0) first = last;
    for (const { id: index, times } of found) {
      messages += times;
      used[index] = (used[index] as number) + times;
    }
    for (const [index, count] of used.entries()) if (count > 0) session.postReceives(index, count);
    used.fill(0);
  }
  return { messages, time: last - first, peak: 0 };
}

/** A limit of messages per ms. */
class Pace {
  /** Time when the next message may leave. */
  next = 0;
  readonly #gap: number;

  constructor(messagesPerMs: number) {
    this.#gap = 1 / messagesPerMs;
  }

  /** Returns how many of `most` may leave now. */
  take(most: number, now: number): number {
    if (this.#gap === 0) return most;
    this.next = Math.max(this.next, now - kBurstMs);
    let count = 0;
    for (; count < most && this.next <= now; count++) this.next += this.#gap;
    return count;
  }
}
