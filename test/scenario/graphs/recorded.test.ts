/** Recordings of programs become message graphs. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { checkGraph } from "../../../src/scenario/graphs/check.js";
import { kCalculate, kReceive, kSend, type MessageGraph } from "../../../src/scenario/graphs/graph.js";
import { readRecordedGraph } from "../../../src/scenario/graphs/recorded.js";
import { refusal } from "./graphs.js";
import { bytesOfRecording, type Event } from "./recordings.js";

function folderOf(files: readonly Buffer[]): string {
  const folder = mkdtempSync(join(tmpdir(), "weir-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [i, bytes] of files.entries()) writeFileSync(join(folder, `${i}.rec`), bytes);
  return folder;
}
const recorded = (...processes: Event[][]) => readRecordedGraph(folderOf(processes.map(bytesOfRecording)));

const connected = (pair: number, gid: number, other: number, peer: number): Event[] => [
  { kind: "connects", pair, other, gid: peer },
  { kind: "address", pair, gid },
];
const kSent = 2;
const kReceived = 128;

const listed = (graph: MessageGraph) =>
  Array.from(graph.kind, (kind, i) => {
    const behind = graph.firstDependency[i + 1] as number;
    const after = [...graph.dependencies.subarray(graph.firstDependency[i] as number, behind)];
    return [["send", "receive", "calculate"][kind], graph.size[i], after.join()];
  });

describe("a recording", () => {
  it("becomes sends and receives, with calculations for the time between, but for that of waiting", () => {
    const { graph, notes } = recorded(
      [
        ...connected(17, 1, 18, 2),
        { kind: "posts", at: 1000, opcode: kSent, pair: 17, bytes: 64 },
        { kind: "waits", at: 1200 },
        { kind: "completes", at: 5000, opcode: 0, pair: 17 },
        { kind: "completes", at: 5000, opcode: kReceived, pair: 17, bytes: 32 },
        { kind: "posts", at: 5700, opcode: kSent, pair: 17, bytes: 8 },
      ],
      [
        ...connected(18, 2, 17, 1),
        { kind: "waits", at: 900 },
        { kind: "completes", at: 3000, opcode: kReceived, pair: 18, bytes: 64 },
        { kind: "posts", at: 3100, opcode: kSent, pair: 18, bytes: 32 },
      ],
    );
    checkGraph(graph);
    expect(graph.ranks).toBe(2);
    const [sends, receives] = [kSend, kReceive].map((kind) => [...graph.kind].filter((one) => one === kind).length);
    expect([sends, receives]).toEqual([3, 3]);
    // Rank 0: posts at once; calculates 200 ns and waits; 700 ns behind both completions. The last message is received unseen.
    const own = listed(graph).slice(0, graph.first[1]);
    expect(own.filter(([kind, size]) => kind === "calculate" && size !== 0).map(([, size]) => size)).toEqual([
      200, 700,
    ]);
    expect(own.filter(([kind]) => kind === "send").map(([, size]) => size)).toEqual([64, 8]);
    // Rank 1 has seen nothing before its message, and answers 100 ns later.
    const other = listed(graph).slice(graph.first[1]);
    expect(other.filter(([kind, size]) => kind === "calculate" && size !== 0).map(([, size]) => size)).toEqual([100]);
    expect(notes).toEqual([expect.stringContaining("shared memory or sockets cannot be seen")]);
  });

  it("has WRITEs that nobody is told of, READs that the peer's NIC answers, and completions of several posts", () => {
    const { graph, notes } = recorded(
      [
        ...connected(17, 1, 18, 2),
        { kind: "posts", at: 10, opcode: 0, pair: 17, bytes: 4096 },
        { kind: "posts", at: 20, opcode: 0, pair: 17, bytes: 4096 },
        { kind: "posts", at: 30, opcode: 4, pair: 17, bytes: 100_000 },
        { kind: "completes", at: 500, opcode: 2, pair: 17 },
        { kind: "posts", at: 600, opcode: 5, pair: 17, bytes: 8 },
        { kind: "completes", at: 900, opcode: 3, pair: 17 },
      ],
      [...connected(18, 2, 17, 1), { kind: "posts", at: 5, opcode: kSent, pair: 18, bytes: 1 }],
    );
    checkGraph(graph);
    const bytes = listed(graph)
      .filter(([kind]) => kind === "send")
      .map(([, size]) => size);
    expect(bytes.sort((a, b) => Number(a) - Number(b))).toEqual([1, 8, 16, 16, 4096, 4096, 100_000]);
    expect(notes.join()).toContain("2 RDMA WRITEs without immediate data");
  });

  it("tells queue pairs of equal numbers apart by their GIDs, and leaves out those without a recorded peer", () => {
    const events = (own: number, peer: number): Event[] => [
      ...connected(17, own, 17, peer),
      { kind: "posts", at: 10 * own, opcode: kSent, pair: 17, bytes: own },
    ];
    const { graph, notes } = recorded(events(1, 2), events(2, 1), events(3, 4), events(4, 3), events(5, 9));
    checkGraph(graph);
    const peers = Array.from({ length: 4 }, (_, rank) => {
      const first = graph.first[rank] as number;
      const send = graph.kind.subarray(first, graph.first[rank + 1]).indexOf(kSend);
      return graph.peer[first + send];
    });
    expect(peers).toEqual([1, 0, 3, 2]);
    expect(notes.join()).toContain("1 posts and completions of queue pairs without a recorded peer");
  });

  it("of a rank that is slower is a graph with longer calculations", () => {
    const times = (gap: number) => {
      const { graph } = recorded(
        [
          ...connected(17, 1, 18, 2),
          { kind: "posts", at: 1000, opcode: kSent, pair: 17, bytes: 1 },
          { kind: "posts", at: 1000 + gap, opcode: kSent, pair: 17, bytes: 1 },
        ],
        [...connected(18, 2, 17, 1), { kind: "completes", at: 2000, opcode: kReceived, pair: 18, bytes: 1 }],
      );
      return graph.size.reduce(
        (sum, size, i) => sum + (graph.kind[i] === kCalculate && i < (graph.first[1] as number) ? size : 0),
        0,
      );
    };
    expect(times(500)).toBe(500);
    expect(times(5000)).toBe(5000);
  });

  it("is refused where nothing was recorded, where a file is none, and where more came than was sent", () => {
    expect(refusal(() => readRecordedGraph(folderOf([])))).toContain("no process has sent or received");
    expect(refusal(() => readRecordedGraph("/nowhere"))).toContain("/nowhere");
    expect(refusal(() => readRecordedGraph(folderOf([Buffer.from("x".repeat(80))])))).toContain("is no event");
    const received: Event = { kind: "completes", at: 5, opcode: kReceived, pair: 18, bytes: 1 };
    const far: Event[] = [
      ...connected(17, 1, 18, 2),
      { kind: "waits", at: 1 },
      { kind: "completes", at: 2, opcode: 0, pair: 17 },
    ];
    expect(refusal(() => recorded([...connected(18, 2, 17, 1), received], far))).toContain(
      "has received 1 messages of rank 0, which has sent 0",
    );
  });

  it("of any bytes is read, or refused", () => {
    const whole = bytesOfRecording([
      ...connected(17, 1, 17, 1),
      { kind: "posts", at: 10, opcode: kSent, pair: 17, bytes: 5 },
      { kind: "completes", at: 20, opcode: kReceived, pair: 17, bytes: 5 },
    ]);
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 12 }),
        fc.nat(whole.length),
        (changes, length) => {
          const bytes = Buffer.from(whole);
          for (const [at, value] of changes) bytes[at] = value;
          const folder = mkdtempSync(join(tmpdir(), "weir-"));
          try {
            writeFileSync(join(folder, "a.rec"), bytes.subarray(0, length));
            refusal(() => checkGraph(readRecordedGraph(folder).graph));
          } finally {
            rmSync(folder, { recursive: true });
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
