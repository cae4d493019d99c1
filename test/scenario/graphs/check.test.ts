import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkGraph } from "../../../src/scenario/graphs/check.js";
import { GraphBuilder, kAny } from "../../../src/scenario/graphs/graph.js";
import { kNone, partners } from "../../../src/scenario/graphs/match.js";
import { startOrder } from "../../../src/scenario/graphs/order.js";

const builder = (ranks = 4) => new GraphBuilder("g.goal", ranks);
const refusal = (graph: GraphBuilder) => {
  try {
    checkGraph(graph.build());
  } catch (error) {
    return (error as Error).message;
  }
  return "";
};

describe("dependencies", () => {
  it("on the operation itself are refused, with rank and line", () => {
    const graph = builder();
    const a = graph.calculate(2, 5, { line: 7 });
    graph.requires(a, a);
    expect(refusal(graph)).toBe("g.goal: rank 2, operation 0 (calculation, line 7) waits for itself");
  });

  it("between ranks are refused", () => {
    const graph = builder();
    graph.requires(graph.calculate(1, 5), graph.calculate(0, 5));
    expect(refusal(graph)).toContain("waits for an operation of another rank: rank 0, operation 0");
  });

  it("in a circle are refused, whether of ends or of starts", () => {
    for (const kind of ["requires", "irequires"] as const) {
      const graph = builder();
      const all = [1, 2, 3, 4, 5, 6].map((line) => graph.calculate(1, 5, { line }));
      graph.requires(all[0] as number, all[5] as number);
      for (let i = 1; i < 6; i++) graph[kind](all[i] as number, all[i - 1] as number);
      expect(refusal(graph)).toBe(
        "g.goal: operations wait for each other: rank 1, operation 0 (calculation, line 1), waits for rank 1, operation 5 " +
          "(calculation, line 6), waits for rank 1, operation 4 (calculation, line 5), waits for rank 1, operation 3 " +
          "(calculation, line 4), and so on over 2 more and back to the first",
      );
    }
  });

  it("in a circle over messages are refused, but not where the send goes first", () => {
    const exchange = (sendFirst: boolean) => {
      const graph = builder(2);
      for (const rank of [0, 1]) {
        const send = graph.send(rank, 1 - rank, 8, 0);
        const receive = graph.receive(rank, 1 - rank, 8, 0);
        if (sendFirst) graph.requires(receive, send);
        else graph.requires(send, receive);
      }
      return graph;
    };
    expect(refusal(exchange(true))).toBe("");
    expect(refusal(exchange(false))).toContain("operations wait for each other: rank 0, operation 0 (send to rank 1)");
  });

  it("on the start of a receive do not wait for its send", () => {
    const graph = builder(2);
    for (const rank of [0, 1]) graph.irequires(graph.send(rank, 1 - rank, 8, 0), graph.receive(rank, 1 - rank, 8, 0));
    expect(refusal(graph)).toBe("");
  });
});

describe("messages", () => {
  it("without a counterpart are refused: the first, and how many more", () => {
    const graph = builder();
    for (const line of [3, 4, 5]) graph.send(0, 1, 8, 9, { line });
    graph.receive(1, 0, 8, 9);
    graph.receive(2, 3, 8, kAny - 1);
    expect(refusal(graph)).toBe(
      "g.goal: 2 kinds of problems\n" +
        "  rank 0, operation 1 (send to rank 1, line 4), tag 9: 3 sends, 1 receives of this sender, receiver and tag; " +
        "and 1 more of this kind (sends that no receive takes)\n" +
        "  rank 2, operation 0 (receive from rank 3), tag 4294967294: 0 sends, 1 receives of this sender, receiver and tag",
    );
  });

  it("of another tag or rank are no counterpart", () => {
    for (const [from, tag] of [
      [0, 2],
      [2, 1],
    ] as const) {
      const graph = builder();
      graph.send(0, 1, 8, 1);
      graph.receive(1, from, 8, tag);
      expect(refusal(graph)).toContain("2 kinds of problems");
    }
  });

  it("that take anything are counted for the rank", () => {
    const graph = (receives: number) => {
      const built = builder();
      built.send(0, 1, 8, 1);
      built.send(2, 1, 8, 2);
      built.send(2, 1, 8, 3);
      built.receive(1, 2, 8, 3);
      for (let i = 1; i < receives; i++) built.receive(1, i === 1 ? kAny : 2, 8, i === 1 ? 2 : kAny);
      return built;
    };
    expect(refusal(graph(3))).toBe("");
    expect(refusal(graph(2))).toContain("3 sends to this rank, which has 2 receives");
    expect(refusal(graph(4))).toContain("3 sends to this rank, which has 4 receives");
  });

  it("that are asked for by tag must be there, even where another receive takes anything", () => {
    const graph = builder();
    graph.send(0, 1, 8, 1);
    graph.send(0, 1, 8, 1);
    graph.receive(1, 0, 8, 2);
    graph.receive(1, kAny, 8, kAny);
    expect(refusal(graph)).toContain("receive from rank 0), tag 2: 0 sends, 1 receives");
  });

  it("are taken in order: a receive that is smaller than its send is refused, a larger one is not", () => {
    const graph = builder();
    graph.send(0, 1, 8, 1);
    graph.send(0, 1, 9, 1);
    graph.receive(1, 0, 16, 1);
    graph.receive(1, 0, 8, 1, { line: 12 });
    expect(refusal(graph)).toBe(
      "g.goal: rank 1, operation 1 (receive from rank 0, line 12), tag 1: takes 8 bytes, but rank 0, operation 1 (send to rank 1) has 9",
    );
  });

  it("of any order pair the nth send with the nth receive of its sender, receiver and tag", () => {
    const message = fc.record({
      from: fc.integer({ min: 0, max: 3 }),
      to: fc.integer({ min: 0, max: 3 }),
      tag: fc.constantFrom(0, 1, 0x1_0000, 0x8000_0000, 0xffff_fffe),
    });
    fc.assert(
      fc.property(fc.array(message, { maxLength: 40 }), fc.infiniteStream(fc.boolean()), (messages, sendFirst) => {
        const graph = builder();
        const sends = [...messages];
        const receives = [...messages];
        // Any interleaving of both.
        while (sends.length + receives.length > 0) {
          const takeSend = receives.length === 0 || (sends.length > 0 && sendFirst.next().value);
          const taken = (takeSend ? sends : receives).shift();
          if (taken === undefined) break;
          if (takeSend) graph.send(taken.from, taken.to, 8, taken.tag);
          else graph.receive(taken.to, taken.from, 8, taken.tag);
        }
        const built = graph.build();
        checkGraph(built);
        const partner = partners(built);
        const key = (i: number) => `${built.peer[i]} ${built.tag[i]}`;
        const rank = (i: number) => built.first.findLastIndex((first) => first <= i);
        for (let i = 0; i < partner.length; i++) {
          const other = partner[i] as number;
          expect(other).not.toBe(kNone);
          expect(partner[other]).toBe(i);
          expect([built.kind[other], built.tag[other], built.peer[other]]).toEqual([
            1 - (built.kind[i] as number),
            built.tag[i],
            rank(i),
          ]);
          for (let j = i + 1; j < partner.length; j++) {
            if (rank(i) === rank(j) && key(i) === key(j) && built.kind[i] === built.kind[j])
              expect(partner[j]).toBeGreaterThan(other);
          }
        }
        expect(startOrder(built, partner).order).toHaveLength(partner.length);
      }),
    );
  });
});
