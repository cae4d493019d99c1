/** Damaged files of every format are read, or refused with a message: in no time, and without more memory than they can fill. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { checkGraph } from "../../../src/scenario/graphs/check.js";
import { anyGraph } from "../../../src/scenario/graphs/entries.js";
import { refusal } from "./graphs.js";
import { anyDamage, kSamples, type Sample } from "./hostile_files.js";

const kPatienceMs = 2000;
/** What a small file may become: its numbers of ranks count, and no more than that. */
const kMostOperations = 5_000_000;

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
  checkGraph(anyGraph(write(sample, sample.files[0]?.[1] as Buffer), { size: 4096 }).graph);
});

it.each(samples)("$format with damage", (sample) => {
  const content = sample.files[0]?.[1] as Buffer;
  fc.assert(
    fc.property(fc.array(anyDamage, { minLength: 1, maxLength: 4 }), (damage) => {
      const bytes = damage.reduce((before, change) => (before.length === 0 ? before : change(before)), content);
      const file = write(sample, bytes);
      const begin = performance.now();
      const message = refusal(() => {
        const { graph } = anyGraph(file, { size: 4096 });
        expect(graph.kind.length).toBeLessThanOrEqual(kMostOperations);
        checkGraph(graph);
      });
      expect(message).not.toMatch(/undefined|\[object|NaN/);
      expect(performance.now() - begin).toBeLessThan(kPatienceMs);
    }),
    { numRuns: 300 },
  );
});
