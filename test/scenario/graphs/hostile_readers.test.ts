/** Damaged files of every format are read, or refused with a message, in little time. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { checkGraph } from "../../../src/scenario/graphs/check.js";
import { addCollective } from "../../../src/scenario/graphs/collectives/add.js";
import { readMsccl } from "../../../src/scenario/graphs/collectives/msccl.js";
import { type ExpandCollective, leastOperations } from "../../../src/scenario/graphs/expand.js";
import { readGraph } from "../../../src/scenario/graphs/read.js";
import { refusal } from "./graphs.js";
import { anyDamage, kSamples, type Sample } from "./hostile_files.js";

const kPatienceMs = 2000;
/** Operations that collectives may become here: a damaged number of ranks may be a million, whose time is that of the algorithms. */
const kMostOperations = 100_000;

class MoreThanHere extends Error {}

const expand: ExpandCollective = (graph, request, after) => {
  if (graph.operations + leastOperations(request) > kMostOperations) throw new MoreThanHere();
  return addCollective(graph, request, after);
};
/** Reads any format. */
const read = (file: string) => readGraph(file, { expand, readMsccl: (xml) => readMsccl(xml, { bytes: 4096 }) }).graph;

const folder = mkdtempSync(join(tmpdir(), "weir-hostile-"));
afterAll(() => rmSync(folder, { recursive: true }));

const binary = (name: string): Sample => ({
  format: `binary GOAL, ${name}`,
  files: [[`${name}.bin`, readFileSync(fileURLToPath(new URL(`fixtures/${name}.bin`, import.meta.url)))]],
});
const samples = [...kSamples, binary("processors"), binary("ring")];

function write({ files }: Sample, damaged: Buffer): string {
  for (const [i, [name, content]] of files.entries()) writeFileSync(join(folder, name), i === 0 ? damaged : content);
  // Groups of a trace are read with the trace.
  return join(folder, files.find(([name]) => !name.endsWith(".json"))?.[0] as string);
}

it.each(samples)("$format as it is", (sample) => {
  checkGraph(read(write(sample, sample.files[0]?.[1] as Buffer)));
});

it.each(samples)("$format with damage", (sample) => {
  const content = sample.files[0]?.[1] as Buffer;
  fc.assert(
    fc.property(fc.array(anyDamage, { minLength: 1, maxLength: 4 }), (damage) => {
      const bytes = damage.reduce((before, change) => (before.length === 0 ? before : change(before)), content);
      const file = write(sample, bytes);
      const begin = performance.now();
      const message = refusal(() => {
        try {
          checkGraph(read(file));
        } catch (error) {
          if (!(error instanceof MoreThanHere)) throw error;
        }
      });
      expect(message).not.toMatch(/undefined|\[object|NaN/);
      expect(performance.now() - begin).toBeLessThan(kPatienceMs);
    }),
    { numRuns: 300 },
  );
});
