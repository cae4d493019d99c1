/** Files that ask for more than they should get. */
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { readGoalBinary } from "../../../src/scenario/graphs/goal_binary.js";
import { GraphBuilder, kMostPhases } from "../../../src/scenario/graphs/graph.js";
import { readConnectionMatrix } from "../../../src/scenario/graphs/htsim.js";
import { refusal, words } from "./graphs.js";

const folder = mkdtempSync(join(tmpdir(), "weir-sizes-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("a rank of binary GOAL may have a hole of a terabyte, and is refused", () => {
  const size = 2 ** 40 + 2;
  const head = Buffer.alloc(8 + 6 + 16 + 8);
  head.writeBigUInt64LE(4223n, 0);
  head.writeUInt32LE(1, 8);
  head.writeBigUInt64LE(22n, 14);
  head.writeBigUInt64LE(BigInt(size - 8), 22);
  const file = join(folder, "hole.bin");
  writeFileSync(file, head);
  truncateSync(file, size);
  expect(refusal(() => readGoalBinary(file))).toContain("hole.bin: does not fit into memory");
});

const barrier = (fire: number, start: number) =>
  readConnectionMatrix(
    "m.cm",
    ["Nodes 2", ...Array(fire).fill("0->1 start 7000 size 1 send_done_trigger 1")]
      .concat(Array(start).fill("0->1 trigger 1 size 1"), `trigger id 1 barrier count ${fire}`)
      .join("\n"),
  );

it("a barrier that many connections fire, and that starts many, has one wait for all and all wait for one", () => {
  expect(words(barrier(2, 2))[0]).toEqual([
    "send 1 1 tag 0 after 4",
    "send 1 1 tag 1 after 4",
    "send 1 1 tag 2 after 5",
    "send 1 1 tag 3 after 5",
    "calculate 7",
    "calculate 0 on 1 after 0, 1",
  ]);
  // Those of `start`, those that fire, and those that are started.
  expect(barrier(2000, 3000).dependencies).toHaveLength(2000 + 2000 + 3000);
});

it("phases have a limit, and as many as it are told apart", () => {
  const graph = new GraphBuilder("g", 1);
  for (let i = 1; i < kMostPhases; i++) {
    graph.enterPhase(`p${i}`);
    graph.calculate(0, 1);
  }
  expect(refusal(() => graph.enterPhase("one more"))).toBe("g: has more than 65535 phases");
  graph.enterPhase("p3");
  graph.calculate(0, 1);
  const { phase, phases } = graph.build();
  expect([phase[0], phase[2], phase.at(-2), phase.at(-1)]).toEqual([1, 3, 65_535, 3]);
  expect(phases[3]).toBe("p3");
});
