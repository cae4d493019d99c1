/** Rules that all descriptors of congestion control algorithms must keep. */
import { describe, expect, it } from "vitest";
import { Findings } from "../../src/base/findings.js";
import { algorithmOf, kAlgorithmNames, kControls } from "../../src/congestion/algorithms.js";
import type { Parameter } from "../../src/congestion/parameter.js";
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

  it("begins in a scenario with what the core begins with, where there are no profiles", () => {
    const values = kControls.map(algorithmOf).flatMap(({ parameters, defaults = {} }) =>
      Object.entries(defaults).map(([name, [written]]) => {
        const { parse, unit, standard = Number.NaN } = parameters[name] as Parameter;
        return { name, value: parse(written), core: unit === "1/1024" ? 1024 * standard : standard };
      }),
    );
    expect(values.length).toBeGreaterThan(30);
    for (const { name, value, core } of values) expect(value, name).toBeCloseTo(core, 9);
  });

  it("has a name of its own for every parameter, profile and variant", () => {
    const names = kControls.map(algorithmOf).flatMap(({ parameters, symbols = {}, profiles = {}, variants }) => {
      const others = Object.values(parameters).flatMap(({ otherSpelling }) => otherSpelling ?? []);
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
