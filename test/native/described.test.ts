/** The native core describes its structs as TypeScript's types do. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Description, typescriptOf } from "../../scripts/generate-native.js";
import { kCompletionRun, kFinished, kRecord, kWorkCommand } from "../../src/native/reports.js";
import { nativeCore } from "../obstacles.js";

const addon = nativeCore<{ description(): Description }>();

describe("types of the native boundary", () => {
  it("are up to date (npm run generate)", () => {
    for (const [path, text] of typescriptOf(addon.description())) {
      expect(text === readFileSync(new URL(`../../${path}`, import.meta.url), "utf8"), path).toBe(true);
    }
  });

  it("say of every field of a configuration what it is", () => {
    const untold = addon
      .description()
      .configuration.flatMap(({ name, fields }) =>
        fields.filter(({ text, unit }) => text === "" && unit === "").map((field) => `${name}.${field.name}`),
      );
    expect(untold).toEqual(["NativeNic.queue_pairs"]); // Their settings; the queue pairs are told under this name.
  });

  it("have units that a time scale changes, or that it does not concern", () => {
    const units = addon.description().configuration.flatMap(({ fields }) => fields.map(({ unit }) => unit));
    const changed = ["ns", "bit/s", "scale"];
    const kept = ["", "bytes", "packets", "count", "log2", "base RTTs", "BDP", "wall ns"];
    expect(units.filter((unit) => !changed.includes(unit) && !kept.includes(unit))).toEqual([]);
  });

  it("have records without overlap", () => {
    for (const { words, at } of [kWorkCommand, kCompletionRun, kRecord, kFinished]) {
      const places = Object.values(at);
      expect(new Set(places).size).toBe(places.length);
      expect(Math.max(...places)).toBeLessThan(8 * words);
    }
  });
});
