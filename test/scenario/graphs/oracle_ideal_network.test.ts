/**
 * The ideal network against another account of what a message graph means (native/graph/graph_host.h), written as simply as can be.
 * Ends of all operations have to be the same, to the ns, for graphs with processors, receives from any rank and of any tag, waits
 * for starts and for ends, and sends that end early or late.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  GraphBuilder,
  kAny,
  kReceive,
  kSend,
  kStartOnly,
  type MessageGraph,
} from "../../../src/scenario/graphs/graph.js";
import { ranksOf } from "../../../src/scenario/graphs/match.js";
import { idealRun } from "./oracle_network.js";

const kLatency = 1000;
const kEager = 3000;

/** In the order of events, before all ranks. */
const kMessage = -1;

interface Event {
  at: number;
  /** Of events of one time messages are first, and then the others by rank; of those of a kind what was decided first. */
  order: number;
  sequence: number;
  run: () => void;
}

/** When each operation ends, ns; -1: never. A byte takes 1 ns. */
function interpret(graph: MessageGraph): number[] {
  const { kind, peer, tag, size } = graph;
  const ranks = ranksOf(graph);
  const ended = Array.from(kind, () => -1);
  const waits = Array.from(
    kind,
    (_, i) => (graph.firstDependency[i + 1] as number) - (graph.firstDependency[i] as number),
  );
  const posted: number[][] = Array.from({ length: graph.ranks }, () => []);
  const arrived: number[][] = Array.from({ length: graph.ranks }, () => []);
  const processorFree = new Map<string, number>();
  const events: Event[] = [];
  const ready: number[] = [];
  let now = 0;
  let sequence = 0;

  const later = (at: number, order: number, run: () => void) => events.push({ at, order, sequence: sequence++, run });
  const release = (of: number, startOnly: boolean) => {
    for (let i = 0; i < kind.length; i++) {
      for (let d = graph.firstDependency[i] as number; d < (graph.firstDependency[i + 1] as number); d++) {
        const entry = graph.dependencies[d] as number;
        if (entry % kStartOnly !== of || entry >= kStartOnly !== startOnly) continue;
        waits[i] = (waits[i] as number) - 1;
        if (waits[i] === 0) ready.push(i);
      }
    }
  };
  const end = (i: number) => {
    ended[i] = now;
    release(i, false);
  };
  const takes = (receive: number, send: number) =>
    (peer[receive] === kAny || peer[receive] === ranks[send]) && (tag[receive] === kAny || tag[receive] === tag[send]);
  const takeFirst = (list: number[], fits: (i: number) => boolean): number | undefined => {
    const at = list.findIndex(fits);
    return at < 0 ? undefined : list.splice(at, 1)[0];
  };

  const arrive = (send: number) => {
    const rank = peer[send] as number;
    const receive = takeFirst(posted[rank] as number[], (i) => takes(i, send));
    if (receive === undefined) (arrived[rank] as number[]).push(send);
    else end(receive);
    startAll();
    if ((size[send] as number) > kEager) end(send);
  };
  const post = (receive: number) => {
    const rank = ranks[receive] as number;
    release(receive, true);
    if (takeFirst(arrived[rank] as number[], (send) => takes(receive, send)) === undefined)
      (posted[rank] as number[]).push(receive);
    else end(receive);
  };
  const send = (i: number) => {
    release(i, true);
    later(now + kLatency + (size[i] as number), kMessage, () => arrive(i));
    if ((size[i] as number) <= kEager) end(i);
  };
  const start = (i: number) => {
    if (kind[i] === kReceive) return post(i);
    const processor = `${ranks[i]} ${graph.processor[i]}`;
    const begin = Math.max(now, processorFree.get(processor) ?? 0);
    if (kind[i] === kSend) {
      if (begin === now) send(i);
      else later(begin, ranks[i] as number, () => send(i));
      return;
    }
    const until = begin + (size[i] as number);
    processorFree.set(processor, until);
    if (begin === now) release(i, true);
    else later(begin, ranks[i] as number, () => release(i, true));
    if (until === now) end(i);
    else later(until, ranks[i] as number, () => end(i));
  };
  const startAll = () => {
    for (let i = ready.shift(); i !== undefined; i = ready.shift()) start(i);
  };

  for (let rank = 0; rank < graph.ranks; rank++) {
    for (let i = graph.first[rank] as number; i < (graph.first[rank + 1] as number); i++)
      if (graph.firstDependency[i] === graph.firstDependency[i + 1]) ready.push(i);
    startAll();
  }
  while (events.length > 0) {
    events.sort((a, b) => a.at - b.at || a.order - b.order || a.sequence - b.sequence);
    const event = events.shift() as Event;
    now = event.at;
    event.run();
    startAll();
  }
  return ended;
}

const step = fc.record({
  calculates: fc.boolean(),
  rank: fc.nat(4),
  other: fc.nat(3),
  tag: fc.nat(1),
  // Mostly whole latencies, so that much happens at the same time.
  size: fc.oneof(
    { weight: 1, arbitrary: fc.nat(20_000) },
    { weight: 9, arbitrary: fc.integer({ min: 0, max: 6 }).map((n) => n * kLatency) },
  ),
  processor: fc.nat(1),
  anyRank: fc.boolean(),
  anyTag: fc.boolean(),
  /** How far back what it waits for is among those of its rank, and whether for its start. */
  behind: fc.array(fc.tuple(fc.nat(3), fc.boolean()), { maxLength: 2 }),
});

/** Operations wait for earlier ones. A receive is there for each send, but another may take what it is for. */
const anyExecutable = fc.array(step, { minLength: 10, maxLength: 40 }).map((steps) => {
  const graph = new GraphBuilder("executable", 5);
  const own: number[][] = Array.from({ length: 5 }, () => []);
  for (const { calculates, rank, other, tag, size, processor, anyRank, anyTag, behind } of steps) {
    const add = (at: number, operation: number) => {
      const before = own[at] as number[];
      for (const [back, startOnly] of behind) {
        const earlier = before.at(-1 - back);
        if (earlier === undefined) continue;
        if (startOnly) graph.irequires(operation, earlier);
        else graph.requires(operation, earlier);
      }
      before.push(operation);
    };
    if (calculates) {
      add(rank, graph.calculate(rank, size, { processor }));
      continue;
    }
    const to = (rank + 1 + other) % 5;
    add(rank, graph.send(rank, to, size, tag, { processor }));
    add(to, graph.receive(to, anyRank ? kAny : rank, 20_000, anyTag ? kAny : tag));
  }
  return graph.build();
});

it("the ideal network ends each operation when the graph's meaning says", () => {
  let complete = 0;
  fc.assert(
    fc.property(anyExecutable, (graph) => {
      const ended = interpret(graph);
      if (!ended.includes(-1)) complete++;
      const { ended: native } = idealRun(graph, { latency: kLatency, rate: 8e9, eager: kEager });
      expect(Array.from(native, (at) => (at < 0 ? -1 : at))).toEqual(ended);
    }),
    { numRuns: 500 },
  );
  // Some 60% come to their end.
  expect(complete).toBeGreaterThan(150);
});
