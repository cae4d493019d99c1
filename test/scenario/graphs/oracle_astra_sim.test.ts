/**
 * Numbers that ASTRA-sim and its network records, from message graphs that say the same.
 *
 * Its analytical network (astra-network-analytical 599a047, congestion_aware/network/Link.cpp) cuts no packets: a link carries one
 * chunk after another, whole, and a chunk goes on when all of it has come. Its GB are 2^30 bytes. As a message graph a link is a
 * processor of the device that sends, which calculates while a chunk's bytes go, and a message of the link's latency.
 */
import { describe, expect, it } from "vitest";
import { addCollective } from "../../../src/scenario/graphs/collectives/add.js";
import { GraphBuilder, type MessageGraph, type Operation } from "../../../src/scenario/graphs/graph.js";
import { idealRun, rankEnds, type Way } from "./oracle_network.js";

const kBytesPerNs = (50 * 2 ** 30) / 1e9;
const kLatency = 500;
const kChunk = 2 ** 20;
/** A chunk of 1 MiB takes 19,531.25 ns; the simulator leaves out fractions. */
const kSerialization = Math.floor(kChunk / kBytesPerNs);
const kOneWay: Way = { latency: kLatency, rate: kBytesPerNs * 8e9 };
const kLinks: Way = { latency: kLatency, rate: 0 };

const end = (graph: MessageGraph, way: Way) => Math.max(...rankEnds(graph, idealRun(graph, way)));

/** Sends a chunk along devices; `linkOf`: which of a device's links goes to another. */
function addChunk(graph: GraphBuilder, devices: readonly number[], linkOf: (from: number, to: number) => number): void {
  let here: Operation | undefined;
  for (const [i, device] of devices.slice(0, -1).entries()) {
    const next = devices[i + 1] as number;
    const tag = graph.newTag();
    const processor = linkOf(device, next);
    // The message leaves with the first byte, and its last has come when the link has calculated and the latency is over.
    const occupied = graph.calculate(device, kSerialization, { processor });
    if (here !== undefined) graph.requires(occupied, here);
    const send = graph.send(device, next, 1, tag, { processor: kNobody });
    graph.requires(send, occupied);
    here = graph.receive(next, device, 1, tag);
  }
}
/** A processor that never calculates. */
const kNobody = 255;

/** Along the shorter side of a ring; upwards where both are as long. */
function aroundRing(devices: number, from: number, to: number): number[] {
  const up = (to - from + devices) % devices;
  const step = devices - up < up ? devices - 1 : 1;
  const way = [from];
  while (way.at(-1) !== to) way.push(((way.at(-1) as number) + step) % devices);
  return way;
}
const ringLink = (from: number, to: number) => ((to - from + 16) % 16 === 1 ? 0 : 1);

describe("test_congestion_aware.cpp, 16 devices, 1 MiB from 1 to 4", () => {
  it("FullyConnected: 20,031 ns are one message", () => {
    const graph = new GraphBuilder("direct", 16);
    graph.send(1, 4, kChunk, 0);
    graph.receive(4, 1, kChunk, 0);
    expect(end(graph.build(), kOneWay)).toBe(20_031);
  });

  it("Switch: 40,062 ns are two, of which the second begins when the first has come", () => {
    const graph = new GraphBuilder("switch", 17);
    addChunk(graph, [1, 16, 4], (_, to) => to);
    expect(end(graph.build(), kLinks)).toBe(40_062);
  });

  it("Ring: 60,093 ns are three", () => {
    const graph = new GraphBuilder("ring", 16);
    addChunk(graph, aroundRing(16, 1, 4), ringLink);
    expect(end(graph.build(), kLinks)).toBe(60_093);
  });

  it("AllGatherOnRing: 704,116 ns, with a queue before each link", () => {
    const graph = new GraphBuilder("all-gather", 16);
    for (let from = 0; from < 16; from++) {
      for (let to = 0; to < 16; to++) if (from !== to) addChunk(graph, aroundRing(16, from, to), ringLink);
    }
    expect(end(graph.build(), kLinks)).toBe(704_116);
  });
});

describe("tests/rt_template: an all-reduce of 1 MiB by 8 ranks on a ring, 117,780 cycles", () => {
  const kRanks = 8;
  const kSplits = 4;
  const kPart = kChunk / kSplits / kRanks;
  /** `endpoint-delay`, before each message and behind the last. */
  const kEndpoint = 10;
  /** Three passes over the part at `local-mem-bw`, whose GB are 10^9 bytes; each leaves out fractions. */
  const kReduction = 3 * Math.floor(kPart / 50);

  it("is what its system layer adds to each of four chunks, one after another", () => {
    const step = Math.floor(kLatency + kPart / kBytesPerNs);
    const steps = 2 * (kRanks - 1);
    expect(kSplits * (steps * step + (steps + 1) * kEndpoint + (kRanks - 1) * kReduction)).toBe(117_780);
  });

  it("is the same as a message graph", () => {
    const graph = new GraphBuilder("ring", kRanks);
    for (let rank = 0; rank < kRanks; rank++) {
      let ready: Operation | undefined;
      const calculate = (ns: number) => {
        const operation = graph.calculate(rank, ns);
        if (ready !== undefined) graph.requires(operation, ready);
        ready = operation;
      };
      for (let split = 0; split < kSplits; split++) {
        calculate(kEndpoint);
        for (let step = 0; step < 2 * (kRanks - 1); step++) {
          const send = graph.send(rank, (rank + 1) % kRanks, kPart, 0);
          graph.requires(send, ready as Operation);
          ready = graph.receive(rank, (rank + kRanks - 1) % kRanks, kPart, 0);
          calculate(kEndpoint + (step < kRanks - 1 ? kReduction : 0));
        }
      }
    }
    expect(end(graph.build(), kOneWay)).toBe(117_780);
  });

  it("is 41,174 ns where ranks do nothing but send: Weir's own all-reduce", () => {
    const graph = new GraphBuilder("allreduce", kRanks);
    const ranks = Array.from({ length: kRanks }, (_, rank) => rank);
    addCollective(graph, { operation: "allreduce", algorithm: "ring", ranks, bytes: kChunk });
    expect(end(graph.build(), kOneWay)).toBe(14 * Math.floor(kLatency + kChunk / 8 / kBytesPerNs));
  });
});
