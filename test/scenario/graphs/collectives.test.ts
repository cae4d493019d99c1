import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  addCollective,
  algorithmsOf,
  type CollectiveOperation,
  type CollectiveRequest,
  collectiveProgram,
} from "../../../src/scenario/graphs/collectives/add.js";
import { kStep, type Program } from "../../../src/scenario/graphs/collectives/program.js";
import { GraphBuilder, kCalculate, kReceive, kSend } from "../../../src/scenario/graphs/graph.js";
import { kCollectiveOperations } from "../../../src/scenario/graphs/job_schema.js";
import { execute, interpret, type Value } from "./collectives_interpreter.js";

const kCases = kCollectiveOperations.flatMap((operation) =>
  algorithmsOf(operation).map((algorithm) => ({ operation, algorithm })),
);

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);

function cellsOf(program: Program): number[] {
  const cells = new Set<number>();
  for (const block of program.blocks) {
    for (const list of [...block.sources, ...block.destinations]) program.forEachCell(list, (cell) => cells.add(cell));
  }
  return [...cells];
}

const once = (...ranks: number[]): Value => new Map(ranks.map((rank) => [rank, 1]));

/** What each rank has before a collective in each cell, and what it must have after it: contributions are of a rank to a cell. */
function meaning({ operation, root = 0 }: CollectiveRequest, n: number) {
  const of = (cell: number, rank: number): Value => once(cell * n + rank);
  const all = (cell: number): Value => once(...upTo(n).map((rank) => cell * n + rank));
  type Rule = (rank: number, cell: number) => Value | undefined;
  const rules: Record<CollectiveOperation, [before: Rule, after: Rule]> = {
    allreduce: [(rank, cell) => of(cell, rank), (_, cell) => all(cell)],
    allgather: [(rank, cell) => (cell % n === rank ? of(cell, rank) : undefined), (_, cell) => of(cell, cell % n)],
    reducescatter: [(rank, cell) => of(cell, rank), (rank, cell) => (cell % n === rank ? all(cell) : undefined)],
    alltoall: [
      (rank, cell) => (Math.floor((cell % n ** 2) / n) === rank ? of(cell, 0) : undefined),
      (rank, cell) => (cell % n === rank ? of(cell, 0) : undefined),
    ],
    broadcast: [(rank, cell) => (rank === root ? of(cell, 0) : undefined), (_, cell) => of(cell, 0)],
    barrier: [(rank) => once(rank), () => undefined],
  };
  return rules[operation];
}

function sameValue(a: Value | undefined, b: Value): boolean {
  return a?.size === b.size && [...b].every(([key, count]) => a.get(key) === count);
}

function check(request: CollectiveRequest, pick: (n: number) => number): Program {
  const n = request.ranks.length;
  const program = collectiveProgram(request);
  const cells = cellsOf(program);
  const [before, after] = meaning(request, n);
  const initial = (rank: number) =>
    new Map(
      cells.flatMap((cell): [number, Value][] => {
        const value = before(rank, cell);
        return value === undefined ? [] : [[cell, value]];
      }),
    );
  const { values } = interpret(program, initial, pick);
  const wrong = [];
  for (const [rank, memory] of values.entries()) {
    for (const cell of cells) {
      const [wanted, has] = [after(rank, cell), memory.get(cell)];
      if (wanted !== undefined && !sameValue(has, wanted)) wrong.push({ rank, cell, has, wanted });
    }
    // Who has heard of whom: once or more often.
    if (request.operation === "barrier" && n > 1 && memory.get(0)?.size !== n) wrong.push({ rank });
  }
  expect(wrong).toEqual([]);
  return program;
}

/** Numbers that look random, the same for each seed. */
function picking(seed: number): (n: number) => number {
  let state = seed >>> 0;
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

const divisors = (n: number) => upTo(n + 1).filter((d) => d > 0 && n % d === 0);

describe.each(kCases)("$operation by $algorithm", ({ operation, algorithm }) => {
  it("brings each contribution once to each place, for all numbers of ranks up to 33", () => {
    for (let n = 1; n <= 33; n++) {
      for (const perNode of algorithm.startsWith("two-level") || ["tree", "pxn"].includes(algorithm)
        ? divisors(n)
        : [1]) {
        const nics = algorithm === "pxn" ? perNode : 1;
        check({ operation, algorithm, ranks: upTo(n), bytes: 8 * n * n, perNode, nics }, picking(n));
      }
    }
  });

  it("does so with any number of NICs in a node, and channels among them", () => {
    for (const [n, perNode, nics] of [
      [16, 8, 8],
      [24, 8, 4],
      [24, 8, 2],
      [12, 4, 4],
      [8, 8, 8],
      [6, 2, 2],
    ] as const) {
      for (const channels of [undefined, 1, 3]) {
        const request = { operation, algorithm, ranks: upTo(n), bytes: 24 * n * n, perNode, nics, root: n - 1 };
        check({ ...request, ...(channels && { channels }) }, picking(n));
      }
    }
  });

  it("does so for any sizes, options and interleavings", () => {
    const requests = fc.record({
      n: fc.integer({ min: 1, max: 14 }),
      bytes: fc.integer({ min: 0, max: 5_000 }),
      channels: fc.integer({ min: 1, max: 3 }),
      chunk: fc.option(fc.integer({ min: 50, max: 900 }), { nil: undefined }),
      inFlight: fc.option(fc.integer({ min: 1, max: 20 }), { nil: undefined }),
      seed: fc.nat(),
    });
    fc.assert(
      fc.property(requests, ({ n, bytes, channels, chunk, inFlight, seed }) => {
        const pick = picking(seed);
        const perNode = divisors(n)[pick(divisors(n).length)] as number;
        const root = pick(n);
        const orders = seed % 2 === 0 ? undefined : upTo(channels).map(() => upTo(n).sort(() => pick(3) - 1));
        const request: CollectiveRequest = {
          ...{ operation, algorithm, ranks: upTo(n), bytes, channels, perNode, root },
          ...(chunk === undefined ? {} : { chunk }),
          ...(inFlight === undefined ? {} : { inFlight }),
          ...(orders === undefined ? {} : { orders }),
        };
        const program = check(request, pick);
        if (operation === "barrier") return;
        const sizes = cellsOf(program).map((cell) => program.bytesOfCells(cell, 1));
        if (n > 1 && operation !== "alltoall") expect(sizes.reduce((a, b) => a + b, 0)).toBe(bytes);
        if (sizes.length > 0) expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
        const longest = Math.max(0, ...program.blocks.flatMap((block) => block.bytes));
        expect(longest).toBeLessThanOrEqual(chunk ?? bytes);
      }),
      { numRuns: 60 },
    );
  });

  it("becomes a graph that ends, with as many bytes sent as received", () => {
    for (const n of [1, 2, 3, 6, 8, 13]) {
      const graph = new GraphBuilder("test", n);
      const ends = addCollective(graph, { operation, algorithm, ranks: upTo(n), bytes: 1_000, channels: 2, chunk: 60 });
      expect(ends).toHaveLength(n);
      const built = graph.build();
      execute(built, 10, 1);
      const bytes = (kind: number) => built.size.reduce((sum, size, i) => sum + (built.kind[i] === kind ? size : 0), 0);
      expect(bytes(kSend)).toBe(bytes(kReceive));
      if (n === 1) expect(built.kind.every((kind) => kind === kCalculate)).toBe(true);
    }
  });
});

describe("all-to-all by PXN", () => {
  it("leaves nodes on the rail of the destination alone, and passes each block on once at most", () => {
    const [n, perNode, nics] = [24, 8, 4];
    const program = collectiveProgram({
      operation: "alltoall",
      algorithm: "pxn",
      ranks: upTo(n),
      bytes: n,
      perNode,
      nics,
    });
    const rail = (rank: number) => Math.floor((rank % perNode) / (perNode / nics));
    const node = (rank: number) => Math.floor(rank / perNode);
    let [direct, passed] = [0, 0];
    for (const block of program.blocks) {
      for (const [step, kind] of block.kinds.entries()) {
        if (kind === kStep.s) direct++;
        else if (kind === kStep.rcs) passed++;
        else continue;
        const to = block.to[step] as number;
        if (node(to) !== node(block.rank)) expect(rail(to)).toBe(rail(block.rank));
      }
    }
    expect(direct).toBe(n * (n - 1));
    // Of 16 ranks in other nodes four are on the sender's rail.
    expect(passed).toBe(n * 12);
  });
});

describe("all-to-all with sizes of each pair", () => {
  it("moves them and nothing else", () => {
    const matrices = fc.integer({ min: 1, max: 7 }).chain((n) => {
      const row = fc.array(fc.nat({ max: 300 }), { minLength: n, maxLength: n });
      return fc.array(row, { minLength: n, maxLength: n });
    });
    fc.assert(
      fc.property(matrices, fc.nat(), fc.integer({ min: 1, max: 8 }), (sizes, seed, inFlight) => {
        const ranks = upTo(sizes.length);
        const program = check({ operation: "alltoall", ranks, bytes: 0, sizes, inFlight, chunk: 100 }, picking(seed));
        const sent = ranks.map(() => ranks.map(() => 0));
        for (const block of program.blocks) {
          for (const [step, kind] of block.kinds.entries()) {
            const row = sent[block.rank] as number[];
            const to = block.to[step] as number;
            if (kind === kStep.s) row[to] = (row[to] as number) + (block.bytes[step] as number);
          }
        }
        expect(sent).toEqual(sizes.map((row, i) => row.map((size, j) => (i === j ? 0 : size))));
      }),
    );
  });
});

describe("a collective in a graph", () => {
  const operation = "allreduce";

  it("waits for what comes before it, and is not confused with others between the same ranks", () => {
    const graph = new GraphBuilder("test", 4);
    const ranks = [3, 1, 0, 2];
    const before = ranks.map((rank, i) => graph.calculate(rank, 100 * (i + 1)));
    const first = addCollective(graph, { operation, ranks, bytes: 400 }, before);
    addCollective(graph, { operation, ranks, bytes: 800 }, first);
    const other = addCollective(graph, { operation, ranks, bytes: 4_000 });
    const built = graph.build();
    const ends = execute(built, 10, 1);
    // The tags of the first are those that were given first.
    const tags = [...new Set(built.tag.filter((_, i) => built.kind[i] !== kCalculate))].sort((a, b) => a - b);
    expect(tags).toHaveLength(3);
    const lastOf = (tag: number) =>
      Math.max(...ends.filter((_, i) => built.tag[i] === tag && built.kind[i] === kReceive));
    const [one, two, three] = tags.map(lastOf);
    expect(one).toBe(400 + 6 * (10 + 100));
    expect(two).toBe(400 + 6 * (10 + 100) + 6 * (10 + 200));
    expect(three).toBe(6 * (10 + 1_000));
    expect(other).toHaveLength(4);
  });

  it("of one rank ends with what it waits for", () => {
    const graph = new GraphBuilder("test", 2);
    const before = graph.calculate(1, 70);
    const [end] = addCollective(graph, { operation, ranks: [1], bytes: 400 }, [before]);
    const then = graph.calculate(1, 5);
    graph.requires(then, end as number);
    expect(Math.max(...execute(graph.build(), 10, 1))).toBe(75);
  });

  it("posts receives in the order in which messages of one rank come, whatever the graph's order of starts", () => {
    const graph = new GraphBuilder("test", 2);
    addCollective(graph, { operation: "broadcast", ranks: [0, 1], bytes: 1_003, chunk: 100 });
    const built = graph.build();
    const receives = [...built.kind.keys()].filter((i) => built.kind[i] === kReceive);
    for (const [i, receive] of receives.entries()) {
      const from = built.firstDependency[receive] as number;
      const waits = [...built.dependencies.slice(from, built.firstDependency[receive + 1])];
      expect(waits).toEqual(i === 0 ? [] : [(receives[i - 1] as number) + 0x8000_0000]);
    }
  });

  it.each<[Partial<CollectiveRequest>, string, string]>([
    [{ algorithm: "pat" }, "allreduce: algorithm: pat is none that it has", "it has ring, tree, halving-doubling"],
    [{ algorithm: "rings" as "ring" }, "rings is none", "ring? it has"],
    [{ algorithm: "constructor" as "ring" }, "constructor is none", "it has ring"],
    [{ ranks: [] }, "ranks: 0", "from 1"],
    [{ ranks: [1, 2, 1] }, "1 is there twice", "once"],
    [{ ranks: [0, 4] }, "ranks: 4 is none", "from 0 to 3"],
    [{ bytes: -1 }, "bytes: -1", "from 0"],
    [{ bytes: 1.5 }, "bytes: 1.5", "whole number"],
    [{ channels: 0 }, "channels: 0", "from 1 to 256"],
    [{ chunk: 0 }, "chunk: 0", "from 1"],
    [{ algorithm: "halving-doubling", chunk: 3 }, "up to 4 blocks", "at least 4"],
    [{ algorithm: "two-level-ring", perNode: 3 }, "3 does not divide 4 ranks", "same number"],
    [{ operation: "broadcast", root: 4 }, "root: 4", "from 0 to 3"],
    [{ operation: "alltoall", inFlight: 0 }, "inFlight: 0", "from 1"],
    [{ sizes: [[1]] }, "sizes: are for alltoall", "leave them out"],
    [{ operation: "alltoall", sizes: [[1]] }, "sizes: 1 rows", "4 rows of 4"],
    [{ operation: "alltoall", sizes: [[], [], [], []] }, "sizes.0: 0 numbers", "4 rows of 4"],
    [{ operation: "alltoall", sizes: upTo(4).map(() => [1, 2, 3, -4]) }, "sizes.0.3: -4", "from 0"],
    [{ orders: [] }, "orders: 0 for 1 channels", "one for each"],
    [{ orders: [[0, 1, 2, 2]] }, "orders.0: is no order", "from 0 to 3 once"],
    [{ bytes: 1e12, chunk: 1 }, "messages", "larger chunks"],
  ])("cannot be with %o", (change, message, hint) => {
    const graph = new GraphBuilder("test", 4);
    const request: CollectiveRequest = { operation, ranks: upTo(4), bytes: 4_000, ...change };
    let error: unknown;
    try {
      addCollective(graph, request);
    } catch (caught) {
      error = caught;
    }
    expect(error).toMatchObject({
      name: "WeirError",
      message: expect.stringContaining(message),
      hint: expect.stringContaining(hint),
    });
  });
});
