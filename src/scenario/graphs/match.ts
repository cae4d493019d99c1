/** Which receive takes which send. */
import { kAny, kCalculate, kReceive, kSend, type MessageGraph, type Operation } from "./graph.js";

/** In place of an operation: there is none. */
export const kNone = 0xffff_ffff;

/** The rank of each operation. */
export function ranksOf(graph: MessageGraph): Uint32Array {
  const ranks = new Uint32Array(graph.kind.length);
  for (let rank = 0; rank < graph.ranks; rank++)
    ranks.fill(rank, graph.first[rank] as number, graph.first[rank + 1] as number);
  return ranks;
}

/** `order`, sorted by a key of 32 bits; those of one key keep their order. */
function sortedBy(order: Uint32Array, keyOf: (operation: Operation) => number): Uint32Array {
  let from = order;
  let to: Uint32Array = new Uint32Array(order.length);
  for (const shift of [0, 16]) {
    const starts = new Uint32Array(0x1_0001);
    for (let i = 0; i < from.length; i++) {
      const digit = ((keyOf(from[i] as number) >>> shift) & 0xffff) + 1;
      starts[digit] = (starts[digit] as number) + 1;
    }
    // Most keys are small, and all have the same upper half.
    if (starts.some((count) => count === from.length)) continue;
    for (let i = 1; i < starts.length; i++) starts[i] = (starts[i] as number) + (starts[i - 1] as number);
    for (let i = 0; i < from.length; i++) {
      const operation = from[i] as number;
      const digit = (keyOf(operation) >>> shift) & 0xffff;
      const at = starts[digit] as number;
      to[at] = operation;
      starts[digit] = at + 1;
    }
    [from, to] = [to, from === order ? new Uint32Array(order.length) : from];
  }
  return from;
}

/**
 * Messages by receiver, within it by sender, within it by tag, and within it by position; receives that take from any rank, or any
 * tag, stand last of theirs. `ranks`: what ranksOf() returns.
 */
export function messagesByChannel(graph: MessageGraph, ranks: Uint32Array): Uint32Array {
  let count = 0;
  for (let i = 0; i < graph.kind.length; i++) if (graph.kind[i] !== kCalculate) count++;
  let order: Uint32Array = new Uint32Array(count);
  for (let i = 0, at = 0; i < graph.kind.length; i++) if (graph.kind[i] !== kCalculate) order[at++] = i;
  order = sortedBy(order, (i) => graph.tag[i] as number);
  order = sortedBy(order, (i) => senderOf(graph, ranks, i));
  return sortedBy(order, (i) => receiverOf(graph, ranks, i));
}

/** The sending rank of a message; kAny if the receive does not say. */
export function senderOf(graph: MessageGraph, ranks: Uint32Array, i: Operation): number {
  return (graph.kind[i] === kSend ? ranks[i] : graph.peer[i]) as number;
}

export function receiverOf(graph: MessageGraph, ranks: Uint32Array, i: Operation): number {
  return (graph.kind[i] === kSend ? graph.peer[i] : ranks[i]) as number;
}

/**
 * For each receive the send that it takes, for each send the receive: the nth of a sender, receiver and tag go together. kNone where
 * there is none, and for all messages to a rank of which a receive takes from any rank or any tag: what it takes is known only when
 * it happens.
 */
export function partners(graph: MessageGraph): Uint32Array {
  const ranks = ranksOf(graph);
  const order = messagesByChannel(graph, ranks);
  const partner = new Uint32Array(graph.kind.length).fill(kNone);
  forEachReceiver(graph, ranks, order, (begin, end, any) => {
    if (any) return;
    forEachChannel(graph, ranks, order, begin, end, ({ messages, firstSend, sends, firstReceive, receives }) => {
      for (let n = 0; n < Math.min(sends, receives); n++) {
        const send = messages[firstSend + n] as number;
        const receive = messages[firstReceive + n] as number;
        partner[send] = receive;
        partner[receive] = send;
      }
    });
  });
  return partner;
}

/** Calls `visit` with the part of `order` that each receiver has, and whether a receive of it takes from any rank or any tag. */
export function forEachReceiver(
  graph: MessageGraph,
  ranks: Uint32Array,
  order: Uint32Array,
  visit: (begin: number, end: number, any: boolean) => void,
): void {
  for (let begin = 0; begin < order.length; ) {
    const receiver = receiverOf(graph, ranks, order[begin] as number);
    let any = false;
    let end = begin;
    for (; end < order.length && receiverOf(graph, ranks, order[end] as number) === receiver; end++) {
      const i = order[end] as number;
      if (graph.kind[i] === kReceive && (graph.peer[i] === kAny || graph.tag[i] === kAny)) any = true;
    }
    visit(begin, end, any);
    begin = end;
  }
}

/** Sends and receives of one sender, receiver and tag, each in order of positions: runs of `messages`. */
export interface Channel {
  messages: Uint32Array;
  firstSend: number;
  sends: number;
  firstReceive: number;
  receives: number;
}

/** Calls `visit` for each sender and tag in a part of `order` that is of one receiver, with an object that it uses again. */
export function forEachChannel(
  graph: MessageGraph,
  ranks: Uint32Array,
  order: Uint32Array,
  begin: number,
  end: number,
  visit: (channel: Channel) => void,
): void {
  const channel: Channel = { messages: order, firstSend: 0, sends: 0, firstReceive: 0, receives: 0 };
  for (let at = begin; at < end; ) {
    const head = order[at] as number;
    const sender = senderOf(graph, ranks, head);
    const tag = graph.tag[head];
    let sends = 0;
    let changes = 0;
    let to = at;
    for (let last = graph.kind[head]; to < end; to++) {
      const i = order[to] as number;
      if (graph.tag[i] !== tag || senderOf(graph, ranks, i) !== sender) break;
      const kind = graph.kind[i];
      if (kind === kSend) sends++;
      if (kind !== last) changes++;
      last = kind;
    }
    channel.sends = sends;
    channel.receives = to - at - sends;
    const sendsFirst = changes > 1 || graph.kind[head] === kSend;
    // Positions of a rank stand together, so only what a rank sends to itself can be mixed.
    channel.messages = changes > 1 ? unmixed(graph, order.subarray(at, to)) : order;
    const first = changes > 1 ? 0 : at;
    channel.firstSend = sendsFirst ? first : first + channel.receives;
    channel.firstReceive = sendsFirst ? first + sends : first;
    visit(channel);
    at = to;
  }
}

/** Sends, and then receives. */
function unmixed(graph: MessageGraph, messages: Uint32Array): Uint32Array {
  const sends = messages.filter((i) => graph.kind[i] === kSend);
  const receives = messages.filter((i) => graph.kind[i] !== kSend);
  const all = new Uint32Array(messages.length);
  all.set(sends);
  all.set(receives, sends.length);
  return all;
}
