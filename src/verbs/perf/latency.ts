/** Measures latency: the two ends take turns. In write-lat the server begins, in send-lat the client, as in perftest. */
import { setImmediate as turn } from "node:timers/promises";
import { CompletionError } from "./completions.js";
import type { Session } from "./session.js";
import { type Latency, latencyOf } from "./statistics.js";

/** Time that an end looks at its memory before the event loop has a turn: that takes longer than a message. */
const kPollMs = 10;
/** Interval at which an end that sleeps looks whether the other one has ended. */
const kLookMs = 50;

export interface LatencySample {
  /** Messages each way. */
  messages: number;
  latency: Latency;
}

/**
 * `options.iterations` messages of `size` bytes each way, or for `options.seconds`, of which the first and the last quarter do
 * not count. `over`: tells whether the other end has ended.
 */
export async function takeTurns(session: Session, size: number, over: () => boolean): Promise<LatencySample> {
  const { iterations, seconds, test } = session.options;
  const begin = performance.now();
  const end = session.role === "server" || seconds === undefined ? Number.POSITIVE_INFINITY : begin + seconds * 1000;
  const most = seconds === undefined ? iterations : Number.POSITIVE_INFINITY;
  const isOver = () => over() || performance.now() >= end;
  const begins = (session.role === "client") === (test === "send-lat");
  const arrived = test === "send-lat" ? receivedOne : lastByteIs;
  /** us */
  const times: number[] = [];
  try {
    for (let number = 1; number <= most && !isOver(); number++) {
      if (!begins && !(await arrived(session, size, number, isOver))) break;
      // This completion is of the message before: its acknowledgement came ahead of the one that has just arrived.
      if (number > 1) await session.sent.next();
      times.push(performance.now() * 1000);
      post(session, size, number);
      if (begins && !(await arrived(session, size, number, isOver))) break;
    }
    if (times.length > 0) await session.sent.next();
  } catch (error) {
    const hangUp = error instanceof CompletionError && error.status === "wr_flush_err";
    if (seconds === undefined || !hangUp) throw error;
  }
  if (seconds === undefined) {
    if (times.length < most) throw new CompletionError("wr_flush_err");
    return { messages: times.length, latency: latencyOf(times) };
  }
  const [from, to] = [(begin + seconds * 250) * 1000, (begin + seconds * 750) * 1000];
  const counted = times.filter((time) => time >= from && time < to);
  return { messages: counted.length, latency: latencyOf(counted) };
}

/** Posts a message whose last byte is its number: the other end of write-lat sees it by that. */
function post(session: Session, size: number, number: number): void {
  const local = session.outbound(0, size);
  session.bytes[local.offset + size - 1] = number;
  const [queuePair] = session.queuePairs;
  if (session.options.test === "send-lat") queuePair?.postSend({ opcode: "send", local });
  else queuePair?.postSend({ opcode: "rdma_write", local, remote: session.remoteMemory(0) });
}

async function receivedOne(session: Session, _size: number, _number: number, over: () => boolean): Promise<boolean> {
  for (;;) {
    const [found] = await session.received.take(performance.now() + kLookMs);
    if (found !== undefined) {
      session.postReceives(found.id, 1);
      return true;
    }
    if (over()) return false;
  }
}

async function lastByteIs(session: Session, size: number, number: number, over: () => boolean): Promise<boolean> {
  const { bytes } = session;
  const offset = session.inbound(0).offset + size - 1;
  for (;;) {
    // Another thread writes there; with Atomics every look reads anew.
    const begin = performance.now();
    do {
      if (Atomics.load(bytes, offset) === number % 256) return true;
      session.device.progress();
    } while (performance.now() - begin < kPollMs);
    if (over()) return false;
    await turn();
    session.signal.throwIfAborted();
    session.device.requireOpen();
  }
}
