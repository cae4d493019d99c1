/**
 * End times of LogGOPSim (spcl/LogGOPSim 76451de; o = g = O = 0, G = 1 ns, L = 1000 ns), which it gave for the same graphs, written as
 * GOAL. It counts a message's bytes from the second on, (s - 1) G, so that each message on the way to the end is 1 ns shorter there.
 *
 * Its receiver's processor and NIC are busy while a message's bytes come in, and its sender's NIC while they go. Here each message
 * is alone, so that times are the same only where no rank has two at once.
 */
import { describe, expect, it } from "vitest";
import { addCollective, type CollectiveRequest } from "../../../src/scenario/graphs/collectives/add.js";
import { GraphBuilder, kAny, type MessageGraph, type Operation } from "../../../src/scenario/graphs/graph.js";
import { idealRun, rankEnds } from "./oracle_network.js";

const kLatency = 1000;
/** 1 ns for each byte. */
const kRate = 8e9;
const end = (graph: MessageGraph, eager?: number) =>
  Math.max(
    ...rankEnds(graph, idealRun(graph, { latency: kLatency, rate: kRate, ...(eager !== undefined && { eager }) })),
  );

type Kind = Pick<CollectiveRequest, "operation" | "algorithm">;
function collective({ operation, algorithm }: Kind, ranks: number, bytes: number): MessageGraph {
  const graph = new GraphBuilder(operation, ranks);
  const all = Array.from({ length: ranks }, (_, rank) => rank);
  addCollective(graph, { operation, ranks: all, bytes, ...(algorithm && { algorithm }) });
  return graph.build();
}

describe("collectives in which a rank has one message at a time", () => {
  // Messages on the way to the end, and the time that LogGOPSim gave.
  it.each([
    ["allreduce", "ring", 4, 15_360, 6, 29_034],
    ["allreduce", "ring", 16, 1_536_000, 30, 2_909_970],
    ["allreduce", "halving-doubling", 8, 15_360, 6, 32_874],
    ["allreduce", "halving-doubling", 16, 1_536_000, 8, 2_887_992],
    ["broadcast", "binomial", 8, 15_360, 3, 49_077],
    ["broadcast", "binomial", 16, 1_536_000, 4, 6_147_996],
    ["broadcast", "ring", 8, 1_536_000, 7, 10_758_993],
    ["allgather", "pat", 16, 15_360, 4, 18_396],
    ["reducescatter", "pat", 8, 1_536_000, 3, 1_346_997],
    ["barrier", "dissemination", 16, 8, 4, 4_028],
  ] as const)("%s by %s of %i ranks, %i bytes", (operation, algorithm, ranks, bytes, messages, recorded) => {
    const graph = collective({ operation, algorithm }, ranks, bytes);
    expect(end(graph)).toBe(recorded + messages);
    // It gave the same with S = 1, where sends end later: nothing waits for them.
    expect(end(graph, 1)).toBe(recorded + messages);
  });
});

describe("collectives in which it has several", () => {
  it.each([
    ["allgather", "direct", 4, 1_536_000, 1_154_997],
    ["alltoall", "pairwise", 8, 1_536_000, 1_350_993],
  ] as const)(
    "%s by %s takes all %i - 1 steps one after another there",
    (operation, algorithm, ranks, bytes, recorded) => {
      const message = kLatency + bytes / ranks;
      expect(recorded).toBe((ranks - 1) * (message - 1));
      expect(end(collective({ operation, algorithm }, ranks, bytes))).toBe(message);
    },
  );
});

/** A message goes from rank to rank, and each calculates before it sends; receives are partly from any rank, and of any tag. */
function tokenRing(seed: number): MessageGraph {
  let state = seed;
  const below = (n: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  const ranks = 2 + below(7);
  const graph = new GraphBuilder("token", ranks);
  const last: (Operation | undefined)[] = [];
  const behind = (rank: number, operation: Operation) => {
    const before = last[rank];
    if (before !== undefined) graph.requires(operation, before);
    last[rank] = operation;
  };
  for (let at = 0, hop = 0; hop < kHops; hop++) {
    behind(at, graph.calculate(at, below(5000)));
    const to = (at + 1 + below(ranks - 1)) % ranks;
    const [tag, size] = [below(3), 1 + below(20_000)];
    behind(at, graph.send(at, to, size, tag));
    behind(to, graph.receive(to, below(4) > 0 ? at : kAny, size, below(4) > 0 ? tag : kAny));
    at = to;
  }
  return graph.build();
}
const kHops = 30;

describe("a message that goes from rank to rank", () => {
  it.each([
    [1, 457_949],
    [2, 382_248],
    [3, 411_545],
    [4, 375_841],
    [5, 350_138],
    [6, 429_434],
    [7, 403_732],
    [8, 373_031],
    [9, 432_330],
    [10, 461_627],
    [11, 450_924],
    [12, 415_219],
  ])("with seed %i, S = 10^9 and 5000", (seed, recorded) => {
    expect(end(tokenRing(seed))).toBe(recorded + kHops);
    expect(end(tokenRing(seed), 5000)).toBe(recorded + kHops);
  });
});
