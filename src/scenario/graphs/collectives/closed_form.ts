/**
 * Times of collectives on an ideal network, in which each message takes `latency + bytes * perByte` and no other is in its way,
 * not even of the same rank. Exact where the data divides evenly among what the algorithm divides it among; otherwise the largest
 * part counts, and the time is an upper bound. Formulas are those of Thakur, Rabenseifner, Gropp: "Optimization of Collective
 * Communication Operations in MPICH" (IJHPCA 2005), without their term for reductions, unless another source is named.
 */
import { algorithmOf } from "./add.js";
import { exchanged, mostExchanged } from "./direct.js";
import { foldingOf } from "./halving_doubling.js";
import { type CheckedRequest, doublings, powerBelow } from "./layout.js";
import { aggregationOf, patGather, patReduce } from "./pat.js";
import { type CollectiveAlgorithm, type CollectiveRequest, checkedShape } from "./request.js";

export interface IdealNetwork {
  /** Of each message, in any unit of time. */
  latency: number;
  /** In the same unit. */
  perByte: number;
}

/** Time of a message of so many bytes. */
type MessageTime = (bytes: number) => number;

/** Time until the last of the ranks has all that it is to have. @throws WeirError for a request that cannot be. */
export function closedFormTime(request: CollectiveRequest, { latency, perByte }: IdealNetwork): number {
  const algorithm = algorithmOf(request);
  const shape = checkedShape(request, algorithm);
  if (shape.ranks === 1) return 0;
  const message = (bytes: number) => latency + bytes * perByte;
  return kForms[algorithm](shape, message, request.operation);
}

type Form = (shape: CheckedRequest, message: MessageTime, operation: CollectiveRequest["operation"]) => number;

const kForms: Record<CollectiveAlgorithm, Form> = {
  /** n - 1 steps of S/n for each half of an all-reduce (Patarasuk, Yuan 2009); a broadcast's message passes n - 1 times. */
  ring: (shape, message, operation) => {
    const steps = (shape.ranks - 1) * (operation === "allreduce" ? 2 : 1);
    return steps * message(cellOf(shape, operation === "broadcast" ? 1 : shape.ranks));
  },
  /** Up and down a tree of ceil(log2 n) levels with half of the data (Sanders, Speck, Träff 2009), and along a node's chain. */
  tree: (shape, message) => {
    const levels = doublings(shape.ranks / shape.perNode) + shape.perNode - 1;
    return 2 * levels * message(cellOf(shape, 1, 2 * shape.channels));
  },
  "halving-doubling": halvingDoublingTime,
  "two-level-ring": (shape, message) => {
    const nodes = shape.ranks / shape.perNode;
    const part = cellOf(shape, shape.ranks, shape.channels, nodes);
    const inside = shape.perNode === 1 ? 0 : 2 * message(part * nodes);
    return inside + 2 * (nodes - 1) * message(part);
  },
  "two-level-tree": (shape, message) => {
    const part = message(cellOf(shape, shape.perNode, 2 * shape.channels));
    return (shape.perNode === 1 ? 0 : 2 * part) + 2 * doublings(shape.ranks / shape.perNode) * part;
  },
  direct: (shape, message, operation) => (operation === "allreduce" ? 2 : 1) * message(cellOf(shape, shape.ranks)),
  pat: patTime,
  pairwise: pairwiseTime,
  /** Two messages one after the other where there are other rails. */
  pxn: (shape, message) => {
    const { ranks, perNode, nics, channels, chunk } = shape;
    const most = mostExchanged(shape);
    const cell = Math.ceil(most / (channels * Math.max(1, Math.ceil(most / (chunk * channels)))));
    return (nics > 1 && ranks > perNode ? 2 : 1) * message(cell);
  },
  /** No rank is further from the root than floor(log2 n) messages: a place among n has no more bits that are set. */
  binomial: (shape, message) => Math.log2(powerBelow(shape.ranks)) * message(cellOf(shape, 1)),
  /** Hensgen, Finkel, Manber 1988. */
  dissemination: (shape, message) => doublings(shape.ranks) * message(shape.bytes),
};

/** Bytes of the largest cell when data is divided into blocks, and each among lanes and pieces for messages of some blocks. */
function cellOf(shape: CheckedRequest, blocks: number, lanes = shape.channels, inMessage = 1): number {
  const block = Math.ceil(shape.bytes / blocks);
  const pieces = Math.max(1, Math.ceil(block / (Math.floor(shape.chunk / inMessage) * lanes)));
  return Math.ceil(block / (lanes * pieces));
}

/**
 * Of a power of two: log2 n steps, together (n - 1)/n of the data, for each half (Rabenseifner 2004). Otherwise ranks that wait
 * add a message before and one behind, and as blocks of members differ, a recurrence tells when each has what.
 */
function halvingDoublingTime(
  shape: CheckedRequest,
  message: MessageTime,
  operation: CollectiveRequest["operation"],
): number {
  const { active, folded, firstOf } = foldingOf(shape.ranks);
  const both = operation === "allreduce";
  const blocks = both ? active : shape.ranks;
  const cell = cellOf(shape, blocks, shape.channels, blocks);
  const first = both ? (member: number) => member : firstOf;
  const gathering = operation === "allgather";
  const own = message(cell);
  const others = message(cell * (blocks - 1));
  const all = message(cell * blocks);
  const before = both ? all : gathering ? own : others;
  const behind = both ? all : gathering ? others : own;
  let times = Array.from({ length: active }, (_, member) => (member < folded ? before : 0));
  const exchange = (distance: number, adding: boolean) => {
    times = times.map((time, member) => {
      const partner = member ^ distance;
      const group = (adding ? member : partner) & -distance;
      const arrival = (times[partner] as number) + message(cell * (first(group + distance) - first(group)));
      return Math.max(time, arrival);
    });
  };
  if (!gathering) for (let distance = active / 2; distance >= 1; distance /= 2) exchange(distance, true);
  if (operation !== "reducescatter") for (let distance = 1; distance < active; distance *= 2) exchange(distance, false);
  return Math.max(...times.map((time, member) => time + (member < folded ? behind : 0)));
}

/**
 * With all trees in one message ceil(log2 n) steps (one more for 2^k + 1 ranks), together (n - 1)/n of the data (Jeaugey, arXiv
 * 2506.20252). All ranks do the same, so one that sends to itself tells the time, with less in a message, too.
 */
function patTime(shape: CheckedRequest, message: MessageTime, operation: CollectiveRequest["operation"]): number {
  const cell = cellOf(shape, shape.ranks);
  const trees = aggregationOf(shape.ranks, shape.chunk, cell);
  const steps = operation === "allgather" ? patGather(shape.ranks, trees) : patReduce(shape.ranks, trees);
  const pieces = Math.ceil(Math.ceil(shape.bytes / shape.ranks) / (cell * shape.channels)) || 1;
  let now = 0;
  for (let piece = 0; piece < pieces; piece++) {
    const arrivals = new Map<number, number>();
    for (const { kind, move } of steps) {
      const offset = move.offsets[0] as number;
      if (kind === "send") arrivals.set(offset, now + message(cell * move.offsets.length));
      else now = Math.max(now, arrivals.get(offset) as number);
    }
  }
  return now;
}

/** A recurrence of steps; with equal parts ceil((n - 1)/w) messages where w steps are under way. */
function pairwiseTime(shape: CheckedRequest, message: MessageTime): number {
  const { ranks } = shape;
  const pieces = Math.max(1, Math.ceil(mostExchanged(shape) / (shape.chunk * shape.channels)));
  const window = Math.min(shape.inFlight, ranks);
  /** started[k][i]: when rank i starts its step k; done[i]: when it has all that it has waited for. */
  const started: number[][] = [];
  const done = new Array<number>(ranks).fill(0);
  const receive = (k: number) => {
    for (const [to, time] of done.entries()) {
      const from = (to + ranks - k) % ranks;
      const bytes = exchanged(shape, from, to);
      if (bytes === 0) continue;
      const arrival = (started[k]?.[from] as number) + message(Math.ceil(bytes / (pieces * shape.channels)));
      done[to] = Math.max(time, arrival);
    }
  };
  for (let k = 1; k < ranks; k++) {
    if (k > window) receive(k - window);
    started[k] = done.slice();
  }
  for (let k = Math.max(1, ranks - window); k < ranks; k++) receive(k);
  return done.reduce((a, b) => Math.max(a, b), 0);
}
