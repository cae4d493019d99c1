import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { readGoalBinary } from "../../../src/scenario/graphs/goal_binary.js";
import { readGoalText } from "../../../src/scenario/graphs/goal_text.js";
import { writeGoalText } from "../../../src/scenario/graphs/goal_text_writer.js";
import { kAny, kStartOnly, type MessageGraph } from "../../../src/scenario/graphs/graph.js";
import { anyGraph, columns, refusal, words } from "./graphs.js";

const folder = mkdtempSync(join(tmpdir(), "weir-goal-"));
afterAll(() => rmSync(folder, { recursive: true }));
const inFile = (content: string | Buffer, name = "g.goal") => {
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
};
const read = (text: string) => words(readGoalText("g.goal", text));
const refused = (text: string) => refusal(() => readGoalText("g.goal", text));
const rank0 = (...lines: string[]) => `num_ranks 2\nrank 0 {\n${lines.join("\n")}\n}\n`;

function textOf(graph: MessageGraph): string {
  let text = "";
  writeGoalText(graph, (piece) => {
    text += piece;
  });
  return text;
}

describe("GOAL text", () => {
  it("has sends, receives and calculations, which require each other", () => {
    const text = `num_ranks 3

rank 0 {
l1: calc 8000 cpu 1
l2: send 80000000b to 2 tag 7 cpu 2 nic 1
l2 requires l1
recv 5b from -1 tag -1
}
rank 2 {
  a_1: recv 80000000b from 0 tag 7
  B: send 5b to 0
  B irequires a_1
}
`;
    const notes: string[] = [];
    const graph = readGoalText("g.goal", text, notes);
    expect(words(graph)).toEqual([
      ["calculate 8000 on 1", "send 80000000 2 tag 7 on 2 after 0", "receive 5 any tag any"],
      [],
      ["receive 80000000 0 tag 7", "send 5 0 tag 0 after start of 0"],
    ]);
    expect([...graph.line]).toEqual([4, 5, 7, 10, 11]);
    expect(notes).toHaveLength(1);
    expect(readGoalText("g.goal", rank0("calc 1 nic 0"), notes) && notes).toHaveLength(1);
  });

  it("may use labels before they are given, have comments, and several statements in a line", () => {
    expect(
      read(rank0("b requires a // of two", "/* one", "and two */ b: calc 1 cpu 3 a: calc 2 a irequires z", "z:calc 3")),
    ).toEqual([["calculate 1 on 3 after 1", "calculate 2 after start of 2", "calculate 3"], []]);
  });

  it("takes labels that are words of operands at the beginning of a line", () => {
    expect(read(rank0("calc 1", "cpu: calc 2", "tag : calc 3", "tag requires cpu"))[0]).toEqual([
      "calculate 1",
      "calculate 2",
      "calculate 3 after 1",
    ]);
  });

  it("keeps labels of each rank to itself, of any form", () => {
    const labels = ["l1", "l01", "m1", "l999999999", "l1234567890", "l1x", "L", "l5000", "l0"];
    const block = (rank: number) =>
      `rank ${rank} {\n${labels.map((label, i) => `${label}: calc ${i}`).join("\n")}\n` +
      `${labels.map((label, i) => `${labels[(i + 1) % labels.length]} requires ${label}`).join("\n")}\n}\n`;
    const graph = readGoalText("g.goal", `num_ranks 2\n${block(1)}${block(0)}`);
    const expected = labels.map((_, i) => `calculate ${i} after ${(i + labels.length - 1) % labels.length}`);
    expect(words(graph)).toEqual([expected, expected]);
    expect(refused(`num_ranks 2\nrank 0 {\nl7: calc 1\n}\nrank 1 {\nl7 requires l7\n}\n`)).toBe(
      "g.goal:6: no operation of rank 1 has the label l7",
    );
  });

  it.each([
    ["", "g.goal:1: expected num_ranks, not the end of the file"],
    ["num_ranks 0", "g.goal: 0 ranks"],
    ["num_ranks 99999999999", "g.goal: 99999999999 ranks"],
    ["num_ranks 1\nrank 1 {\n}", "g.goal:2: rank 1: there are 1"],
    ["num_ranks 2\nrank 1 {\n}\nrank 1 {}", "g.goal:4: rank 1 is there twice"],
    ["num_ranks 1\nrank 0 {\ncalc 1", "expected an operation, a label or }, not the end of the file"],
    [rank0("calc 1ns"), "g.goal:4: expected :, requires or irequires, not }"],
    [rank0("send 5 to 1"), "g.goal:3: expected b, not to"],
    [rank0("send 5b from 1"), "g.goal:3: expected to, not from"],
    [rank0("send 5b to 2"), "g.goal:3: rank 0, send: rank 2: ranks are from 0 to 1"],
    [rank0("send 5b to -1"), "g.goal:3: expected a rank, not -"],
    [rank0("send 5b to 1 tag -1"), "g.goal:3: rank 0, send: tag 4294967295"],
    [rank0("recv 5b from -2"), "g.goal:3: expected -1, which is any, not 2"],
    [rank0("calc 1000000000000001"), "g.goal:3: rank 0, calculation: 1000000000000001 ns"],
    [rank0(`calc ${"9".repeat(1024)}`), "g.goal:3: rank 0, calculation: Infinity ns"],
    [rank0(`calc ${"9".repeat(1025)}`), "g.goal:3: a name or number of more than 1024 characters"],
    [rank0("calc 1 cpu 256"), "g.goal:3: rank 0, calculation: processor 256"],
    [rank0("a: calc 1", "a: calc 1"), "g.goal:4: label a is there twice"],
    [rank0("l2: calc 1", "", "l2: calc 1"), "g.goal:5: label l2 is there twice"],
    [rank0("a: calc 1", "a requires b"), "g.goal:4: no operation of rank 0 has the label b"],
    [rank0("a: a: calc 1"), "g.goal:3: expected send, recv or calc, not a"],
    [rank0("# what"), "g.goal:3: expected an operation, a label or }, not #"],
    [rank0("\0"), "g.goal:3: expected an operation, a label or }, not the byte 0"],
    [rank0("calc 1", "/* and"), "g.goal:4: a comment that begins here does not end"],
  ])("refuses %j", (text, message) => {
    expect(refused(text)).toContain(message);
  });

  it("is read a piece at a time, wherever pieces end", () => {
    // Lines of many lengths, so that ends of pieces fall into all kinds of tokens.
    const count = 60_000;
    const lines = Array.from(
      { length: count },
      (_, i) => `l${i + 1}: calc ${i * 7919} ${"/* */ ".repeat(i % 5)}${i ? `l${i + 1} requires l${i}` : ""}`,
    );
    const file = inFile(rank0(...lines));
    const graph = readGoalText(file);
    expect(graph.kind).toHaveLength(count);
    expect(graph.size.every((ns, i) => ns === i * 7919)).toBe(true);
    expect(graph.dependencies.every((awaited, i) => awaited === i)).toBe(true);
    expect(graph.line.every((line, i) => line === i + 3)).toBe(true);
  });

  it("that cannot be read is refused by name", () => {
    expect(refusal(() => readGoalText(join(folder, "none")))).toBe(`${join(folder, "none")}: no such file`);
    expect(refusal(() => readGoalText(folder))).toBe(`${folder}: is a directory`);
    expect(refusal(() => readGoalBinary(join(folder, "none")))).toBe(`${join(folder, "none")}: no such file`);
  });

  it("comes back as it was written", () => {
    fc.assert(
      fc.property(anyGraph, (graph) => {
        expect(columns(readGoalText("g.goal", textOf(graph)))).toEqual(columns(graph));
      }),
    );
  });

  it("refuses damaged text with a message, or reads it", () => {
    fc.assert(
      fc.property(anyGraph, fc.nat(), fc.nat(), fc.string({ maxLength: 5 }), (graph, at, length, put) => {
        const text = textOf(graph);
        const begin = at % text.length;
        const damaged = text.slice(0, begin) + put + text.slice(begin + (length % 9));
        expect(refused(damaged)).not.toContain("undefined");
      }),
    );
  });
});

/** What txt2bin writes. */
function binaryOf(graph: MessageGraph): Buffer {
  const parts: Buffer[] = [];
  const table = Buffer.alloc(8 + 6 + 16 * graph.ranks);
  table.writeBigUInt64LE(4223n, 0);
  table.writeUInt32LE(graph.ranks, 8);
  let at = table.length - 8;
  for (let rank = 0; rank < graph.ranks; rank++) {
    const first = graph.first[rank] as number;
    const count = (graph.first[rank + 1] as number) - first;
    const ends: number[][] = Array.from({ length: count }, () => []);
    const starts: number[][] = Array.from({ length: count }, () => []);
    const open: number[] = [];
    for (let i = 0; i < count; i++) {
      const waits = graph.dependencies.subarray(graph.firstDependency[first + i], graph.firstDependency[first + i + 1]);
      open.push(waits.length);
      for (const entry of waits) (entry >= kStartOnly ? starts : ends)[(entry % kStartOnly) - first]?.push(i);
    }
    const roots = open.flatMap((n, i) => (n === 0 ? [i] : []));
    const block = Buffer.alloc(8 + 4 * roots.length + 39 * count);
    block.writeUInt32LE(count, 0);
    block.writeUInt32LE(roots.length, 4);
    for (const [n, root] of roots.entries()) block.writeUInt32LE(root, 8 + 4 * n);
    const appendix: number[] = [];
    for (let i = 0; i < count; i++) {
      const record = 8 + 4 * roots.length + 39 * i;
      const size = graph.size[first + i] as number;
      block.writeUInt32LE(open[i] as number, record);
      block.writeUInt8((graph.kind[first + i] as number) + 1, record + 4);
      block.writeUInt32LE(graph.peer[first + i] as number, record + 5);
      block.writeBigUInt64LE(BigInt(size), record + 9);
      block.writeUInt32LE(graph.tag[first + i] as number, record + 17);
      block.writeUInt8(graph.processor[first + i] as number, record + 21);
      for (const [list, field] of [
        [ends[i] as number[], 23],
        [starts[i] as number[], 31],
      ] as const) {
        block.writeUInt32LE(list.length, record + field);
        block.writeUInt32LE(appendix.length, record + field + 4);
        appendix.push(...list);
      }
    }
    parts.push(block, Buffer.from(new Uint32Array(appendix).buffer));
    table.writeBigUInt64LE(BigInt(at), 14 + 16 * rank);
    at += block.length + 4 * appendix.length;
    table.writeBigUInt64LE(BigInt(at), 22 + 16 * rank);
  }
  return Buffer.concat([table, ...parts]);
}

/** Dependencies in an order of their own: the binary form lists them from the other end. */
const sorted = (graph: MessageGraph) => {
  for (let i = 0; i < graph.kind.length; i++)
    graph.dependencies.subarray(graph.firstDependency[i], graph.firstDependency[i + 1]).sort();
  return columns(graph);
};

describe("binary GOAL", () => {
  it("is read as the text of the same graph", () => {
    fc.assert(
      fc.property(anyGraph, (graph) => {
        const file = inFile(binaryOf(graph), "g.bin");
        expect(sorted(readGoalBinary(file))).toEqual(sorted(graph));
      }),
    );
  });

  const small = () =>
    binaryOf(readGoalText("g.goal", rank0("a: calc 5", "b: send 8b to 1", "b requires a", "b irequires a")));
  const broken = (change: (bytes: Buffer) => Buffer | undefined) => {
    const bytes = small();
    return refusal(() => readGoalBinary(inFile(change(bytes) ?? bytes, "g.bin")));
  };
  const set = (offset: number, value: number) => (bytes: Buffer) => {
    bytes.writeUInt32LE(value, offset);
    return bytes;
  };
  const kRank0 = 8 + 6 + 32;
  const kRecords = kRank0 + 8 + 4;

  it("is taken as it is", () => {
    expect(broken((bytes) => bytes)).toBe("");
  });

  it.each([
    ["no cookie", set(0, 4224), "is no binary GOAL schedule"],
    ["the cookie of a used one", set(0, 2342), "was used by a simulator as its memory"],
    ["too short", (bytes: Buffer) => bytes.subarray(0, 10), "is too short"],
    ["more ranks than fit", set(8, 1000), "says that it has 1000 ranks"],
    ["no ranks", set(8, 0), "0 ranks"],
    ["a rank that begins in the header", set(14, 8), "rank 0 is from 8 to"],
    ["a rank that ends behind the file", set(14 + 24, 1e6), "rank 1 is from"],
    ["a rank that ends before it begins", set(14 + 8, 3), "rank 0 is from 38 to 3"],
    ["a second rank in the first", set(14 + 16, 38), "rank 1 is from 38 to"],
    ["more operations than bytes", set(kRank0, 3), "rank 0: 3 operations, 1 of which wait for nothing, do not fit"],
    ["more roots than operations", set(kRank0 + 4, 3), "rank 0: 2 operations, 3 of which wait"],
    ["an unknown type", (b: Buffer) => b.fill(4, kRecords + 4, kRecords + 5), "rank 0, operation 0: type 4 is none of"],
    ["a peer that is no rank", set(kRecords + 39 + 5, 2), "rank 0, send: rank 2"],
    ["a list behind the appendix", set(kRecords + 23, 3), "rank 0, operation 0: its list of 3 is not at 0 of 2"],
    ["a list that another has", set(kRecords + 35, 0), "rank 0, operation 0: its list of 1 is not at 1 of 2"],
    ["an operation of a list that is none", set(kRecords + 78, 2), "operation 2 waits for it, but there are 2"],
    ["counts that a simulator has changed", set(kRecords + 39, 0), "rank 0, operation 1: the number of operations"],
  ])("refuses %s", (_, change, message) => {
    expect(broken(change)).toContain(message);
  });

  it("refuses damaged files with a message, or reads them", () => {
    fc.assert(
      fc.property(
        anyGraph,
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        (graph, damage) => {
          const bytes = binaryOf(graph);
          for (const [at, value] of damage) bytes[at % bytes.length] = value;
          expect(refusal(() => readGoalBinary(inFile(bytes, "g.bin")))).not.toContain("undefined");
        },
      ),
    );
  });
});

it("Any is written as it is read", () => {
  const graph = readGoalText("g.goal", rank0("recv 1b from -1 tag -1"));
  expect([graph.peer[0], graph.tag[0]]).toEqual([kAny, kAny]);
  expect(textOf(graph)).toBe("num_ranks 2\n\nrank 0 {\nl1: recv 1b from -1 tag -1\n}\n\nrank 1 {\n}\n");
});
