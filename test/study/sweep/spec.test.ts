import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadSweep } from "../../../src/study/sweep/spec.js";
import { folder, writeSweep } from "../fixture.js";

const load = (spec: object) => loadSweep(writeSweep(folder(), spec));

describe("a sweep file", () => {
  it("makes all combinations, the last axis fastest", () => {
    const { combinations, axes } = load({
      vary: { "switch.ecn.kmin": ["1KB", "2KB"], duration: ["1ms", "2ms", "3ms"] },
    });
    expect(axes).toEqual(["switch.ecn.kmin", "duration"]);
    expect(combinations.map((one) => one.map(([, value]) => value))).toEqual([
      ["1KB", "1ms"],
      ["1KB", "2ms"],
      ["1KB", "3ms"],
      ["2KB", "1ms"],
      ["2KB", "2ms"],
      ["2KB", "3ms"],
    ]);
  });

  it("takes what is zipped together, and points as they are", () => {
    const { combinations, axes } = load({
      points: [{ "congestion.algorithm": "none" }, { "congestion.profile": "mlx5", warmup: "1ms" }],
      zip: [{ "switch.ecn.kmin": [1, 2], "switch.ecn.kmax": [10, 20] }],
    });
    expect(axes).toEqual([
      "congestion.algorithm",
      "switch.ecn.kmin",
      "switch.ecn.kmax",
      "congestion.profile",
      "warmup",
    ]);
    expect(combinations.map(Object.fromEntries)).toEqual([
      { "congestion.algorithm": "none", "switch.ecn.kmin": 1, "switch.ecn.kmax": 10 },
      { "congestion.algorithm": "none", "switch.ecn.kmin": 2, "switch.ecn.kmax": 20 },
      { "congestion.profile": "mlx5", warmup: "1ms", "switch.ecn.kmin": 1, "switch.ecn.kmax": 10 },
      { "congestion.profile": "mlx5", warmup: "1ms", "switch.ecn.kmin": 2, "switch.ecn.kmax": 20 },
    ]);
  });

  it("without anything to vary is one point of the scenario", () => {
    expect(load({})).toMatchObject({ combinations: [[]], axes: [], seeds: 1, collect: ["totals.goodput_bps"] });
  });

  it.each([
    [{ zip: [{ a: [1, 2], b: [1] }] }, /zip\.0: lists of 2, 1 values/],
    [{ vary: { duration: ["1ms"] }, set: { duration: "2ms" } }, /set\.duration: is in vary too/],
    [{ vary: { duration: ["1ms"] }, points: [{ duration: "2ms" }] }, /vary\.duration: is in points too/],
    [{ vary: { seed: [1, 2] } }, /vary\.seed: is not a field to vary here\n {2}hint: use `seeds`/],
    [{ vary: { duration: [] } }, /vary\.duration: nothing|vary\.duration: a list is too short/],
    [{ vary: { "switch ecn": [1] } }, /write a field as a path/],
    [{ seeds: [1, 1] }, /seeds: has a seed twice/],
    [{ seeds: 0 }, /seeds: 0 is too small/],
    [{ seeds: 10_000, vary: { "a.b": Array.from({ length: 11 }, (_, i) => i) } }, /110000 points are too many/],
    [{ sedes: 3 }, /sedes: unknown field\n {2}hint: did you mean seeds\?/],
  ])("refuses %j", (spec, message) => {
    let text = "";
    try {
      load(spec);
    } catch (error) {
      const { message: what, hint } = error as Error & { hint?: string };
      text = `${what}\n  hint: ${hint}`;
    }
    expect(text).toMatch(message);
    expect(text).toMatch(/^sweep .*sweep\.yaml/);
  });

  it("tells of a file that is not there, and of a scenario that is missing in it", () => {
    expect(() => loadSweep("nosuch.yaml")).toThrow("sweep nosuch.yaml: no such file");
    const file = join(folder(), "sweep.yaml");
    writeFileSync(file, "seeds: 2\n");
    expect(() => loadSweep(file)).toThrow("scenario: is missing");
  });
});
