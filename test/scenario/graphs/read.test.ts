import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { GraphBuilder } from "../../../src/scenario/graphs/graph.js";
import { readGraph } from "../../../src/scenario/graphs/read.js";
import { refusal, simpleExpand, words } from "./graphs.js";

const folder = mkdtempSync(join(tmpdir(), "weir-read-"));
afterAll(() => rmSync(folder, { recursive: true }));
const options = { expand: simpleExpand, readMsccl: (file: string) => new GraphBuilder(file, 7).build() };
function read(name: string, content: string | Uint8Array, ranks?: number) {
  const file = join(folder, name);
  writeFileSync(file, content);
  return readGraph(file, { ...options, ranks });
}

const goal = "// small\nnum_ranks 2\nrank 1 {\ncalc 3 nic 1\n}\n";
const binary = Buffer.from(
  // One rank with a calculation of 5 ns.
  "7f10000000000000" +
    "01000000" +
    "0000" +
    "1600000000000000" +
    "4900000000000000" +
    "01000000" +
    "01000000" +
    "00000000" +
    "00000000" +
    "03" +
    "00000000" +
    "0500000000000000" +
    "00000000" +
    "0000" +
    "00".repeat(16),
  "hex",
);

describe("files of message graphs", () => {
  it("are known by what they begin with, whatever their name is", () => {
    expect(words(read("a.goal", goal).graph)).toEqual([[], ["calculate 3"]]);
    expect(words(read("a.txt", goal).graph)).toEqual([[], ["calculate 3"]]);
    expect(words(read("b.goal", binary).graph)).toEqual([["calculate 5"]]);
    expect(words(read("b", binary).graph)).toEqual([["calculate 5"]]);
    expect(words(read("c.matrix", "# one\nNodes 2\n0->1 start 0 size 1\n").graph)[0]).toEqual(["send 1 1 tag 0"]);
    expect(read("d.workload", "MICRO\n1\nx -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n", 2).graph.ranks).toBe(2);
    expect(read("e.algorithm", '<?xml version="1.0"?>\n<algo name="x">').graph.ranks).toBe(7);
  });

  it("are known by their name where they begin with anything", () => {
    expect(words(read("f.yaml", "ranks: 1\noperations: [{ rank: 0, calculate: 1us }]\n").graph)).toEqual([
      ["calculate 1000"],
    ]);
    expect(read("g.0.et", Buffer.from([0])).graph.ranks).toBe(1);
    for (const [name, message] of [
      ["h.goal", "expected num_ranks, not what"],
      ["h.bin", "is too short for a binary"],
      ["h.cm", "expected a connection"],
      ["h.txt", "ends before its first layer"],
      ["h.yml", "message graph"],
    ] as const)
      expect(refusal(() => read(name, "what"))).toContain(message);
  });

  it("say what is left out", () => {
    expect(read("a.goal", goal).notes).toEqual([
      "which NIC an operation uses is left out: a rank's messages go by all that it has",
    ]);
  });

  it("are refused where nothing is known of them", () => {
    expect(refusal(() => read("x.pdf", "what"))).toBe(`${join(folder, "x.pdf")}: is no message graph that is known`);
    expect(refusal(() => readGraph(join(folder, "none.goal"), options))).toContain("none.goal: no such file");
    expect(refusal(() => readGraph(folder, options))).toContain("is a directory");
    const file = join(folder, "e.xml");
    writeFileSync(file, "<algo >");
    expect(refusal(() => readGraph(file, { expand: simpleExpand }))).toContain("MSCCL algorithms cannot be read here");
  });
});
