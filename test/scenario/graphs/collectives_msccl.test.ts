import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UnreadableFile, WeirError } from "../../../src/base/error.js";
import {
  addCollective,
  type CollectiveRequest,
  collectiveProgram,
} from "../../../src/scenario/graphs/collectives/add.js";
import { readMsccl, readMscclProgram } from "../../../src/scenario/graphs/collectives/msccl.js";
import {
  kStep,
  type Program,
  receives,
  type StepKind,
  sends,
} from "../../../src/scenario/graphs/collectives/program.js";
import { readTunerCsv } from "../../../src/scenario/graphs/collectives/tuner_csv.js";
import { GraphBuilder, kCalculate } from "../../../src/scenario/graphs/graph.js";
import { execute, interpret, type Value } from "./collectives_interpreter.js";

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);

/** Writes a program whose blocks have one peer in each direction as compilers write it; all of its cells are input. */
function toXml(program: Program, chunks: number): string {
  const names = new Map<StepKind, string>(Object.entries(kStep).map(([name, kind]) => [kind, name]));
  const rangeOf = (list: number) => {
    const cells: number[] = [];
    program.forEachCell(list, (cell) => cells.push(cell));
    return { first: cells[0] ?? 0, count: cells.length };
  };
  const lines = [
    `<algo name="a &amp; b" proto="Simple" nchannels="${program.channels}" nchunksperloop="${chunks}" ngpus="${program.ranks}" coll="allreduce" inplace="1" outofplace="1" minBytes="0" maxBytes="0">`,
  ];
  for (const rank of upTo(program.ranks)) {
    lines.push(`  <gpu id="${rank}" i_chunks="${chunks}" o_chunks="0" s_chunks="0">`);
    for (const [id, block] of program.blocks.filter((candidate) => candidate.rank === rank).entries()) {
      const to = block.to[block.kinds.findIndex(sends)] ?? -1;
      const from = block.from[block.kinds.findIndex(receives)] ?? -1;
      lines.push(`    <tb id="${id}" send="${to}" recv="${from}" chan="${block.channel}">`);
      for (const [step, kind] of block.kinds.entries()) {
        const { first, count } = rangeOf(block.sources[step] as number);
        lines.push(
          `      <step s="${step}" type="${names.get(kind)}" srcbuf="i" srcoff="${first}" dstbuf="i" dstoff="${first}" cnt="${count}" depid="-1" deps="-1" hasdep="0"/>`,
        );
      }
      lines.push("    </tb>");
    }
    lines.push("  </gpu>");
  }
  return `<?xml version="1.0"?>\n${[...lines, "</algo>"].join("\n")}\n`;
}

/** A sum along three ranks and back, with all kinds of steps: chunk 0 of all inputs, by way of scratch at rank 0. */
const kChain = `<algo name="chain" proto="LL" nchannels="2" nchunksperloop="2" ngpus="3" coll="custom" inplace="1">
  <!-- two
       lines -->
  <gpu id="0" i_chunks="2" o_chunks="1" s_chunks="1">
    <tb id="0" send="1" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="-1" recv="1" chan="1">
      <step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="0" deps="0" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="5" send="-1" recv="-1" chan="-1">
      <step s="0" type="cpy" srcbuf="s" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="1" deps="1" hasdep="0"/>
      <step s="1" type="re" srcbuf="i" srcoff="1" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="0" s_chunks="0">
    <tb id="0" send="2" recv="0" chan="0">
      <step s="0" type="rrs" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="0" recv="2" chan="1">
      <step s="0" type="rcs" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="0" deps="0" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="2" i_chunks="2" o_chunks="0" s_chunks="0">
    <tb id="0" send="1" recv="-1" chan="1">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="1" deps="0" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="1" chan="0">
      <step s="0" type="rrc" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
  </gpu>
</algo>
`;

describe("MSCCL XML", () => {
  it.each<[string, Omit<CollectiveRequest, "ranks">, number]>([
    ["a ring all-reduce", { operation: "allreduce", bytes: 8 * 2 * 3 * 50, channels: 2, chunk: 50 }, 48],
    ["a ring all-gather", { operation: "allgather", bytes: 8 * 50 }, 8],
    ["a ring reduce-scatter", { operation: "reducescatter", bytes: 8 * 50 }, 8],
    ["a broadcast in pieces", { operation: "broadcast", bytes: 600, chunk: 50 }, 12],
  ])("of %s is the graph that the collective itself becomes", (_, collective, chunks) => {
    const request = { ...collective, ranks: upTo(8) };
    const own = new GraphBuilder("x.xml", 8);
    addCollective(own, request);
    const { line, ...expected } = own.build();
    const text = toXml(collectiveProgram(request), chunks);
    const { line: lines, ...read } = readMsccl("x.xml", { bytes: request.bytes, text });
    expect(read).toEqual(expected);
    const type = text.split("\n")[(lines[0] as number) - 1];
    expect(type).toContain("<step s=");
    expect(line.every((none) => none === 0)).toBe(true);
  });

  it("has all kinds of steps, and what waits across blocks", () => {
    for (const seed of upTo(20)) {
      const program = readMscclProgram("chain.xml", { bytes: 200, text: kChain });
      const initial = (rank: number): Map<number, Value> =>
        new Map([
          [0, new Map([[rank, 1]])],
          [1, new Map([[10, 1]])],
        ]);
      let state = seed;
      const { values } = interpret(program, initial, (n) => {
        state = (state * 7 + 3) % 101;
        return state % n;
      });
      const all = new Map(upTo(3).map((rank) => [rank, 1]));
      // Cells of rank 0: two of input, then output and scratch.
      expect(values[0]?.get(3)).toEqual(all);
      expect(values[0]?.get(2)).toEqual(new Map([...all, [10, 1]]));
      expect(values[1]?.get(0)).toEqual(all);
      expect(values[2]?.get(0)).toEqual(all);
    }
    const graph = readMsccl("chain.xml", { bytes: 200, text: kChain });
    expect(Math.max(...execute(graph, 10, 1))).toBe(4 * (10 + 100));
    expect([...graph.line].filter((line, i) => graph.kind[i] !== kCalculate && line === 0)).toEqual([]);
  });

  const change = (from: string | RegExp, to: string) => {
    const text = kChain.replace(from, to);
    expect(text).not.toBe(kChain);
    return text;
  };
  it.each<[string, string | RegExp, string, string, string?]>([
    ["too few GPUs", 'ngpus="3"', 'ngpus="4"', "chain.xml:1: ngpus: 4, and 3 are there"],
    ["no number", 'ngpus="3"', 'ngpus="3.0"', "chain.xml:1: ngpus: 3.0", "from 1 to"],
    ["an attribute less", ' nchunksperloop="2"', "", "chain.xml:1: nchunksperloop: <algo> does not have it"],
    ["chunks that do not divide", 'nchunksperloop="2"', 'nchunksperloop="3"', "no multiple", "bytes of 201"],
    ["other sizes", 'inplace="1"', 'minBytes="1" maxBytes="199"', "bytes: 200", "for 1 to 199 bytes"],
    ["a GPU twice", '<gpu id="1"', '<gpu id="0"', "chain.xml:17: id: <gpu> 0 is there twice"],
    [
      "a block twice",
      '<tb id="1" send="-1" recv="1" chan="1"',
      '<tb id="0" send="-1" recv="1" chan="1"',
      "chain.xml:8: id",
    ],
    ["itself as peer", 'send="1" recv="-1" chan="0"', 'send="0" recv="-1" chan="0"', "send: 0 is the <gpu> itself"],
    ["a channel too many", 'chan="1"', 'chan="2"', "chan: 2", "from 0 to 1"],
    [
      "ends that are shared",
      'recv="2" chan="1"',
      'recv="0" chan="0"',
      "recv: another <tb> of <gpu> 1 has 0 on channel 0",
    ],
    ["steps out of order", 's="1" type="r"', 's="2" type="r"', "chain.xml:10: s: 2", "numbered from 0"],
    ["an unknown type", 'type="rrs"', 'type="constructor"', "type: constructor", "one of nop, s, r,"],
    ["a receive without a peer", 'type="re"', 'type="r"', "recv of its <tb> is -1"],
    ["a send without a peer", 'type="re"', 'type="s"', "send of its <tb> is -1"],
    ["an unknown buffer", 'dstbuf="s"', 'dstbuf="t"', "dstbuf: t", "input, output or scratch"],
    ["an offset past the end", 'dstbuf="s" dstoff="0"', 'dstbuf="s" dstoff="1"', "chunks 1 to 1 of buffer s", "has 1"],
    ["a huge count", 'cnt="1" depid="1" deps="1"', 'cnt="16777216" depid="1" deps="1"', "of buffer s", "has 1"],
    ["half a dependency", 'depid="0" deps="0"', 'depid="0" deps="-1"', "depid: 0, and deps: -1", "both are -1"],
    ["no such block", 'depid="0" deps="0"', 'depid="7" deps="0"', "there is no <tb> 7"],
    ["no such step", 'depid="0" deps="0"', 'depid="0" deps="1"', "<tb> 0 has no step 1", "it has 1 steps"],
    [
      "a step that waits for itself",
      'depid="0" deps="0"',
      'depid="1" deps="0"',
      "chain.xml:9: step 0 of rank 0: waits for ever",
    ],
    ["a message too few", /<step s="0" type="rcs".*/, "", "chain.xml:10: step 1 of rank 0: rank 1 sends nothing to it"],
    [
      "a send too many",
      /<step s="1" type="r" .*/,
      '<step s="1" type="nop" depid="-1" deps="-1"/>',
      "rank 0 has no receive",
    ],
    ["another size", /(type="rrc".*)cnt="1"/, '$1cnt="2"', "100 bytes are sent to it, and it is for 200"],
    ["text", "<gpu", "x<gpu", "chain.xml:4: text between elements"],
    ["another element", "<tb", "<op", "<op> in <gpu>", "<algo> has <gpu>"],
    ["a document type", "<algo", "<!DOCTYPE a><algo", "the name of an element is missing"],
    ["an entity", 'name="chain"', 'name="&x;"', "no entity"],
    ["an attribute twice", 'name="chain"', 'name="chain" name="b"', "name is there twice"],
    ["no quotes", 'name="chain"', "name=chain", "a value in quotes is missing"],
    ["an open end", /<\/algo>\n/, "", "<algo> is not closed"],
    ["a wrong end", "</gpu>", "</tb>", "chain.xml:16: </tb> closes <gpu>"],
    ["a second root", /<\/algo>\n/, "</algo><algo/>", "a second outermost element"],
    ["nothing", /[\s\S]*/, "", "there is no element"],
  ])("with %s is an error", (_, from, to, message, hint = "") => {
    let error: unknown;
    try {
      readMsccl("chain.xml", { bytes: 200, text: change(from, to) });
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(WeirError);
    expect((error as WeirError).message).toContain(message);
    expect((error as WeirError).hint ?? "").toContain(hint);
  });

  it("of any kind is read, or refused with its line", () => {
    const pieces = fc.constantFrom(
      "<",
      ">",
      '"',
      "&amp;",
      "</tb>",
      "<tb ",
      "-1",
      "999999999999",
      "\u0000",
      "<!--",
      'cnt="',
      "\n",
      "rrcs",
    );
    const edits = fc.array(fc.tuple(fc.nat({ max: kChain.length }), fc.nat({ max: 40 }), pieces), {
      minLength: 1,
      maxLength: 3,
    });
    fc.assert(
      fc.property(edits, (list) => {
        let text = kChain;
        for (const [at, cut, piece] of list) text = text.slice(0, at) + piece + text.slice(at + cut);
        try {
          readMsccl("chain.xml", { bytes: 200, text });
        } catch (error) {
          expect(error).toBeInstanceOf(WeirError);
          expect((error as Error).message).toMatch(/^chain\.xml:\d+: /);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it("is read from its file", () => {
    const folder = mkdtempSync(join(tmpdir(), "weir-msccl-"));
    try {
      const file = join(folder, "chain.xml");
      writeFileSync(file, kChain);
      expect(readMsccl(file, { bytes: 200 })).toEqual({
        ...readMsccl("chain.xml", { bytes: 200, text: kChain }),
        source: file,
      });
      expect(() => readMsccl(join(folder, "none.xml"), { bytes: 200 })).toThrow(UnreadableFile);
      expect(() => readTunerCsv(join(folder, "none.conf"))).toThrow(UnreadableFile);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("of a deep file is an error and no overflow", () => {
    expect(() => readMsccl("x.xml", { bytes: 1, text: "<algo>".repeat(100_000) })).toThrow(WeirError);
  });
});
