/** Rules that all descriptors of congestion control algorithms must keep. */
import { describe, expect, it } from "vitest";
import { Findings } from "../../src/base/findings.js";
import { algorithmOf, kAlgorithmNames, kControls } from "../../src/congestion/algorithms.js";
import { checkCongestion, congestionSchema, resolveCongestion } from "../../src/congestion/section.js";

describe("congestion control", () => {
  const profiles = kAlgorithmNames.flatMap((algorithm) =>
    Object.keys(algorithmOf(algorithm).profiles ?? { "": {} }).map((profile) => [algorithm, profile] as const),
  );

  it.each(profiles)("%s %s is within the ranges of its parameters", (algorithm, profile) => {
    const found = new Findings();
    const own = algorithm === "library" ? { library: { file: "mine.so" } } : {};
    const section = congestionSchema.parse({ algorithm, ...(profile !== "" && { profile }), ...own });
    const congestion = resolveCongestion(section, 40e9, (file) => file, found);
    checkCongestion(congestion, 40e9, found);
    expect(found.problems).toEqual([]);
    const { parameters } = congestion;
    expect(Object.values(parameters).some((value) => typeof value === "number" && !Number.isFinite(value))).toBe(false);
  });

  it("has a name of its own for every parameter, profile and variant", () => {
    const names = kControls
      .map(algorithmOf)
      .flatMap(({ parameters, otherSpelling, symbols = {}, profiles = {}, variants }) => {
        const others = Object.keys(parameters).flatMap((name) => otherSpelling?.(name) ?? []);
        return [
          ...Object.keys(parameters),
          ...others,
          ...Object.keys(symbols),
          ...Object.keys(profiles),
          ...(variants?.names ?? []),
        ];
      });
    expect(new Set(names).size).toBe(names.length);
  });
});
