/**
 * Files of message graphs, as others may hand them over, binary ones first of all: they are read, or refused in the words of the
 * product. What is read either can be carried out, which says the check, or is refused by it; and as GOAL it is the same graph.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { WeirError } from "../../src/base/error.js";
import { checkGraph } from "../../src/scenario/graphs/check.js";
import { addCollective } from "../../src/scenario/graphs/collectives/add.js";
import { readMsccl } from "../../src/scenario/graphs/collectives/msccl.js";
import { readGoalText } from "../../src/scenario/graphs/goal_text.js";
import { writeGoalText } from "../../src/scenario/graphs/goal_text_writer.js";
import type { MessageGraph } from "../../src/scenario/graphs/graph.js";
import { readGraph } from "../../src/scenario/graphs/read.js";
import { readRecordedGraph } from "../../src/scenario/graphs/recorded.js";
import { kSamples, type Sample } from "../scenario/graphs/hostile_files.js";
import { bytesOfRecording } from "../scenario/graphs/recordings.js";
import type { OpenTarget } from "./engine.js";
import { Finding, type Input, requireThat } from "./input.js";

const kFixtures = "test/scenario/graphs/fixtures";
/** A change of a rank count makes a file of a few bytes a collective of a million operations: that is legal, and slow. */
const kMostOperations = 20_000;
const kBytes = 1000;
const kNumbers = [0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

const kRecording: Sample = {
  format: "recording",
  files: [
    [
      "1.rec",
      bytesOfRecording([
        { kind: "connects", pair: 17, other: 18, gid: 2 },
        { kind: "address", pair: 17, gid: 1 },
        { kind: "posts", at: 1000, opcode: 2, pair: 17, bytes: 64 },
        { kind: "waits", at: 1200 },
        { kind: "posts", at: 1300, opcode: 4, pair: 17, bytes: 640 },
        { kind: "completes", at: 5000, opcode: 2, pair: 17 },
      ]),
    ],
    [
      "2.rec",
      bytesOfRecording([
        { kind: "connects", pair: 18, other: 17, gid: 1 },
        { kind: "address", pair: 18, gid: 2 },
        { kind: "completes", at: 3000, opcode: 128, pair: 18, bytes: 64 },
      ]),
    ],
  ],
};

export const open: OpenTarget = (folder) => {
  const goal = ["processors", "ring", "barrier"].map(
    (name): Sample => ({
      format: "GOAL binary",
      files: [[`${name}.bin`, readFileSync(join(kFixtures, `${name}.bin`))]],
    }),
  );
  const samples = [...goal, kRecording, ...kSamples];
  const place = join(folder, "graph");

  const run = (input: Input): Iterable<string> => {
    rmSync(place, { recursive: true, force: true });
    mkdirSync(place);
    const { format, files } = input.pick(samples);
    files.forEach(([name, content], i) => {
      writeFileSync(join(place, name), i === 0 ? damaged(input, content) : content);
    });
    const file = join(place, files[0]?.[0] ?? "");
    const graph = orRefusal(format, () => (format === "recording" ? readRecordedGraph(place).graph : read(file)));
    if (graph === undefined) return [`${format} refused`];
    const checked = orRefusal(format, () => {
      checkGraph(graph);
      return true;
    });
    requireSame(graph, join(place, "again.goal"));
    return [
      `${format} ${checked === undefined ? "that never ends" : "read"}`,
      `${format} of ${Math.min(9, graph.ranks)} ranks`,
    ];
  };
  return { longest: 64, run };
};

function read(file: string): MessageGraph {
  const expand: typeof addCollective = (graph, request, after) => {
    if (request.ranks.length ** 2 > kMostOperations) throw new WeirError("too large a collective to try");
    return addCollective(graph, request, after);
  };
  return readGraph(file, { expand, readMsccl: (xml) => readMsccl(xml, { bytes: kBytes }), ranks: 4 }).graph;
}

/** Returns undefined when it is refused as users are told. */
function orRefusal<T>(format: string, action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    if (error instanceof WeirError) return undefined;
    throw new Finding(`${format}: ${(error as Error).message}`, format, { cause: error });
  }
}

function damaged(input: Input, content: Buffer): Buffer {
  let bytes = Buffer.from(content);
  for (let changes = 1 + input.below(4); changes > 0 && bytes.length > 0; changes--) {
    const at = input.below(bytes.length);
    switch (input.below(5)) {
      case 0:
        bytes[at] = (bytes[at] as number) ^ (1 << input.below(8));
        break;
      case 1:
        bytes = bytes.subarray(0, at);
        break;
      case 2: {
        const from = input.below(bytes.length);
        const part = bytes.subarray(from, from + input.below(64));
        bytes = Buffer.concat([bytes.subarray(0, at), part, bytes.subarray(at + input.below(2) * part.length)]);
        break;
      }
      case 3:
        if (at + 4 <= bytes.length) bytes.writeUInt32LE(input.pick(kNumbers), at);
        break;
      default:
        input.take(8).copy(bytes, at);
    }
  }
  return bytes;
}

const bytesIn = ({ buffer, byteOffset, byteLength }: Uint8Array | Uint32Array | Float64Array) =>
  Buffer.from(buffer, byteOffset, byteLength);

/** What GOAL can say of a graph is the same after it is written and read. */
function requireSame(graph: MessageGraph, file: string): void {
  let text = "";
  writeGoalText(graph, (piece) => {
    text += piece;
  });
  const again = readGoalText(file, text);
  for (const column of ["first", "kind", "peer", "tag", "size", "processor", "firstDependency"] as const) {
    requireThat(bytesIn(graph[column]).equals(bytesIn(again[column])), `${column} is other as GOAL`, text);
  }
}
