import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import protobuf from "protobufjs";
import { afterAll, describe, expect, it } from "vitest";
import { readChakra } from "../../../src/scenario/graphs/chakra.js";
import { checkGraph } from "../../../src/scenario/graphs/check.js";
import type { CollectiveRequest } from "../../../src/scenario/graphs/collectives/request.js";
import type { ExpandCollective } from "../../../src/scenario/graphs/expand.js";
import { refusal, simpleExpand, words } from "./graphs.js";

/** The part of MLCommons' et_def.proto that traces of these tests have. */
const schema = protobuf.parse(
  `
  syntax = "proto3";
  message AttributeProto {
    string name = 1;
    string doc_string = 2;
    oneof value {
      double double_val = 3; float float_val = 5; int32 int32_val = 7; int64 int64_val = 9; uint32 uint32_val = 11;
      uint64 uint64_val = 13; sint32 sint32_val = 15; sint64 sint64_val = 17; fixed32 fixed32_val = 19;
      fixed64 fixed64_val = 21; sfixed32 sfixed32_val = 23; sfixed64 sfixed64_val = 25; bool bool_val = 27;
      string string_val = 29;
    }
  }
  message GlobalMetadata { string version = 1; repeated AttributeProto attr = 2; }
  message IOInfo { string values = 1; string shapes = 2; string types = 3; }
  message Node {
    uint64 id = 1; string name = 2; int32 type = 3; repeated uint64 ctrl_deps = 4; repeated uint64 data_deps = 5;
    uint64 start_time_micros = 6; uint64 duration_micros = 7; IOInfo inputs = 8; IOInfo outputs = 9;
    repeated AttributeProto attr = 10;
  }`,
  { keepCase: true },
).root;
const Node = schema.lookupType("Node");
const Metadata = schema.lookupType("GlobalMetadata");

const [kMetadata, kLoad, kCalculation, kSend, kReceive, kCollective] = [1, 2, 4, 5, 6, 7];
type Attributes = Record<string, number | string | boolean>;

function attribute([name, value]: [string, number | string | boolean], field = "int64_val") {
  if (typeof value === "boolean") return { name, bool_val: value };
  return typeof value === "string" ? { name, string_val: value } : { name, [field]: value };
}
const node = (id: number, type: number, fields: object = {}, attributes: Attributes = {}) =>
  Node.encodeDelimited({
    id,
    name: `n${id}`,
    type,
    ...fields,
    attr: [{ name: "other", string_val: "?" }, ...Object.entries(attributes).map((entry) => attribute(entry))],
  }).finish();
const metadata = () => Metadata.encodeDelimited({ version: "0.0.4", attr: [attribute(["schema", "1.0.2"])] }).finish();

const folder = mkdtempSync(join(tmpdir(), "weir-chakra-"));
afterAll(() => rmSync(folder, { recursive: true }));
let traces = 0;
/** Writes a trace of these nodes for each rank; returns the file of the first. */
function trace(ranks: readonly (readonly Uint8Array[])[], groups?: object): string {
  const name = join(folder, `t${traces++}.x`);
  for (const [rank, nodes] of ranks.entries())
    writeFileSync(`${name}.${rank}.et`, Buffer.concat([metadata(), ...nodes]));
  if (groups !== undefined) writeFileSync(`${name}.json`, JSON.stringify(groups));
  return `${name}.0.et`;
}
const read = (...ranks: Uint8Array[][]) => readChakra(trace(ranks), simpleExpand);
const refused = (...ranks: Uint8Array[][]) => refusal(() => read(...ranks));
const call = (id: number, attributes: Attributes, fields: object = {}) =>
  node(id, kCollective as number, fields, { comm_type: 0, comm_size: 64, ...attributes });
const wait = (id: number, ...data_deps: number[]) =>
  node(id, kCalculation as number, { duration_micros: id, data_deps });

describe("Chakra traces", () => {
  it("have calculations of the CPU and the GPU, messages, and what they wait for", () => {
    const file = trace([
      [
        node(10, kCalculation as number, { duration_micros: 5 }),
        node(
          11,
          kCalculation as number,
          { duration_micros: 6, ctrl_deps: [10], data_deps: [12, 10] },
          { is_cpu_op: true },
        ),
        node(12, kLoad as number, { duration_micros: 7 }),
        node(13, kSend as number, { data_deps: [11] }, { comm_dst: 1, comm_tag: 4, comm_size: 1000 }),
      ],
      [
        node(7, kReceive as number, {}, { comm_src: 0, comm_dst: 1, comm_tag: 4, comm_size: 1000 }),
        node(8, kCalculation as number, { data_deps: [7, 8, 99] }),
      ],
    ]);
    const notes: string[] = [];
    const graph = readChakra(file, simpleExpand, notes);
    checkGraph(graph);
    expect(words(graph)).toEqual([
      ["calculate 5000", "calculate 6000 on 1 after 0, 2, 0", "calculate 7000", "send 1000 1 tag 4 after 1"],
      ["receive 1000 0 tag 4", "calculate 0 after 0"],
    ]);
    expect(notes).toEqual([
      "1 calculations have no duration, and take no time: how much they calculate is left out",
      "1 dependencies of nodes on themselves are left out: they change in place what they read",
      "1 dependencies on nodes that the trace does not have are left out",
    ]);
  });

  it("take numbers of any type of the schema", () => {
    const types = ["double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"];
    for (const type of [...types, "fixed32", "fixed64", "sfixed32", "sfixed64"]) {
      const bytes = Node.encodeDelimited({
        id: 1,
        type: kSend,
        attr: [attribute(["comm_size", 4096], `${type}_val`), attribute(["comm_dst", 0], `${type}_val`)],
      }).finish();
      expect(words(read([bytes]))).toEqual([["send 4096 0 tag 0"]]);
    }
  });

  it("have the nth call of a communicator by each rank as one collective", () => {
    const requests: CollectiveRequest[] = [];
    const expand: ExpandCollective = (graph, request, after) => {
      requests.push(request);
      return simpleExpand(graph, request, after);
    };
    const groups = '[{"pg_name": "5", "ranks": [2, 1]}, {"pg_name": "0", "ranks": []}]';
    const file = trace([
      [wait(1), call(2, { comm_size: 8, pg_name: "0" }, { data_deps: [1] }), wait(3, 2), call(4, { comm_type: 2 })],
      ...[1, 2].map(() => [
        node(1, kMetadata as number, { inputs: { values: `['${groups}']` } }),
        call(2, { pg_name: "5", comm_type: 5, root_rank: 1 }),
        call(3, { comm_size: 8, pg_name: "0" }),
        node(4, kCollective as number, { duration_micros: 9 }, { is_cpu_op: true }),
        call(5, { comm_type: 2 }),
        wait(6, 3),
      ]),
    ]);
    const graph = readChakra(file, expand);
    checkGraph(graph);
    expect(requests).toEqual([
      { operation: "allreduce", ranks: [0, 1, 2], bytes: 8 },
      { operation: "allgather", ranks: [0, 1, 2], bytes: 192 },
      { operation: "broadcast", ranks: [2, 1], bytes: 64, root: 1 },
    ]);
    expect(words(graph)[0]).toEqual([
      "calculate 1000",
      "calculate 0 after 0",
      "calculate 3000 after 5",
      "send 8 1 tag 2147483648 after 1",
      "receive 8 2 tag 2147483648 after 1",
      "calculate 0 after 3, 4",
      "send 192 1 tag 2147483649",
      "receive 192 2 tag 2147483649",
      "calculate 0 after 6, 7",
    ]);
    expect(words(graph)[1]).toContain("calculate 9000 on 1");
  });

  it("take no name, and 0, for all ranks", () => {
    const graph = read([call(1, { pg_name: "0" })], [call(1, {})], [call(1, { comm_group: 0 })]);
    expect(words(graph).map(([send]) => send)).toEqual([1, 2, 0].map((next) => `send 64 ${next} tag 2147483648`));
  });

  it("have process groups of a file beside them", () => {
    const ranks = [[call(1, { pg_name: "3" })], [], [call(1, { pg_name: "3" })]];
    const graph = readChakra(trace(ranks, { 3: [0, 2] }), simpleExpand);
    expect(words(graph)[2]?.[0]).toBe("send 64 0 tag 2147483648");
    for (const [groups, message] of [
      [{ 3: [0, 7] }, "communicator 3 has rank 7, but there are files of 3 ranks"],
      [{ 3: [0, 0] }, "communicator 3 has no rank, or one twice"],
      [{ 3: [2] }, "node 1 (n1): rank 0 is none of communicator 3"],
      [{ 4: [0, 2] }, "node 1 (n1): no ranks are known of communicator 3"],
      [{ 3: "all" }, "has no lists of ranks by the name of a communicator"],
    ] as const)
      expect(refusal(() => readChakra(trace(ranks, groups), simpleExpand))).toContain(message);
  });

  it("are refused where ranks disagree on a collective", () => {
    expect(refused([call(1, {})], [call(1, { comm_size: 65 })])).toContain(
      'node 1 (n1): ALL_REDUCE of 64 bytes is call 0 of communicator "", but for rank 1 that is node 1, ALL_REDUCE of 65 bytes',
    );
    expect(refused([call(1, {})], [call(1, { comm_type: 7 })])).toContain(
      "but for rank 1 that is node 1, REDUCE_SCATTER",
    );
    expect(refused([call(1, {}), call(2, {})], [call(1, {})])).toContain(
      'node 2 (n2): rank 1 takes no part: it calls communicator "" 1 times, rank 0 2',
    );
  });

  it.each([
    ["kinds of one rank's data", [call(1, { comm_type: 1 })], "node 1 (n1): collectives of kind REDUCE are not read"],
    ["unknown kinds", [call(1, { comm_type: 10 })], "comm_type 10 is unknown"],
    ["unknown types", [node(1, 8)], "type 8 is unknown"],
    ["two nodes of an id", [wait(1), wait(1)], "node 1 (n1): there is another node of this id"],
    ["sends without a size", [node(1, 5, {}, { comm_dst: 0 })], "comm_size is missing"],
    ["sends to nobody", [node(1, 5, {}, { comm_size: 1 })], "comm_dst is missing"],
    [
      "sends to no rank",
      [node(1, 5, {}, { comm_size: 1, comm_dst: 1 })],
      "rank 0, send: rank 1: ranks are from 0 to 0",
    ],
    ["sends of others", [node(1, 5, {}, { comm_size: 1, comm_dst: 0, comm_src: 3 })], "a message of rank 3 to 0"],
    ["negative sizes", [node(1, 5, {}, { comm_size: -1, comm_dst: 0 })], "comm_size: -1 is no whole number"],
    [
      "groups that are none",
      [node(1, 1, { inputs: { values: "['[{\"pg_name\": 3}]']" } })],
      "its process groups cannot",
    ],
  ])("are refused with %s", (_, nodes, message) => {
    expect(refused(nodes)).toContain(message);
  });

  it("need a file for each rank", () => {
    mkdirSync(join(folder, "gap"));
    for (const rank of [0, 2]) writeFileSync(join(folder, "gap", `a.${rank}.et`), metadata());
    expect(refusal(() => readChakra(join(folder, "gap", "a.0.et"), simpleExpand))).toContain("there is no a.1.et");
    expect(refusal(() => readChakra(join(folder, "gap", "b.0.et"), simpleExpand))).toContain("there is no b.0.et");
    expect(refusal(() => readChakra(join(folder, "gap", "a.et"), simpleExpand))).toContain("are called NAME.0.et");
    expect(refusal(() => readChakra(join(folder, "none", "a.0.et"), simpleExpand))).toContain("none: no such file");
  });

  it("are refused where they are damaged", () => {
    const damaged = (...bytes: number[]) => refused([Uint8Array.from(bytes)]);
    expect(damaged(5)).toContain("is no node of Chakra: 5 bytes from byte");
    expect(damaged(0xff, 0xff, 0xff)).toContain("is no node of Chakra");
    // A group in a group, without end.
    expect(damaged(4, 0x7b, 0x7b, 0x7b, 0x7b)).toContain("is no node of Chakra: a group");
    // A number that goes on behind its message.
    expect(damaged(2, 0x18, 0x80, 0x01)).toContain("is no node of Chakra: index out of range");
    expect(damaged(12, 0x08, ...Array(9).fill(0xff), 0x01, 0)).toContain("is beyond 2^53");
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 }), (damage) => {
        const bytes = Buffer.concat([
          call(1, { pg_name: "0" }),
          wait(2, 1),
          node(3, 5, {}, { comm_size: 1, comm_dst: 0 }),
        ]);
        for (const [at, value] of damage) bytes[at % bytes.length] = value;
        expect(refused([bytes])).not.toContain("undefined");
      }),
    );
  });
});
