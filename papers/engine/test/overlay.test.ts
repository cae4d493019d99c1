import { describe, expect, it } from "vitest";
import { type OverlaidCurve, overlayColumn, overlaysOf } from "../overlay.js";
import type { ClockEvidence } from "../verdict.js";
import { fakeExperiment } from "./fakes.js";

const shows = (clock: ClockEvidence["clock"], y: number, doubt?: string): ClockEvidence => ({
  clock,
  observation: { values: {}, plots: [], traces: { rate: { x: [0, 1, 2, 3, 4], y: Array<number>(5).fill(y) } } },
  ...(doubt !== undefined && { doubt }),
});
const kOther = { rate: [{ label: "ns3", values: { x: [0, 2], y: [5, 7] } }] };

describe("clocks laid over each other", () => {
  it("have the difference of each two of them, and of each to each reference", () => {
    const [rate, ...more] = overlaysOf(fakeExperiment, [shows("wire", 1), shows("sim", 2), shows("model", 4)], kOther);
    expect(more).toEqual([]);
    expect(rate?.curves.map(({ source }) => source)).toEqual(["wire", "sim", "model", "ns3"]);
    expect(rate?.differences.map(({ between, mean_absolute }) => [between.join(), mean_absolute])).toEqual([
      ["wire,sim", 1],
      ["wire,model", 3],
      ["sim,model", 2],
      ["wire,ns3", 5],
      ["sim,ns3", 4],
      ["model,ns3", 2],
    ]);
  });

  it("know no difference where they have no time in common", () => {
    const late = { rate: [{ label: "late", values: { x: [8, 9], y: [1, 1] } }] };
    const [rate] = overlaysOf(fakeExperiment, [shows("sim", 1)], late);
    expect(rate?.differences).toEqual([{ between: ["sim", "late"], mean_absolute: null }]);
  });

  it("look the same in every figure, and say which run is invalid", () => {
    const evidence = [shows("wire", 1, "run fast is invalid"), shows("model", 4)];
    const column = overlayColumn(overlaysOf(fakeExperiment, evidence, kOther));
    expect(column?.heading).toBe("all clocks");
    const [plot] = column?.plots ?? [];
    expect(plot?.x_range).toEqual([0, 2]);
    expect(plot?.curves.map(({ label, color, style }) => [label, color, style])).toEqual([
      ["wire, invalid", 0, "dashed"],
      ["model", 2, "dotted"],
      ["ns3", 3, "solid"],
    ]);
    // One point beyond the range, no more.
    expect(plot?.curves[0]?.x).toEqual([0, 1, 2, 3]);
  });

  it("are drawn only where there are two", () => {
    const alone = overlaysOf(fakeExperiment, [shows("sim", 1)], {});
    expect(alone.map(({ curves }): OverlaidCurve["source"][] => curves.map(({ source }) => source))).toEqual([["sim"]]);
    expect(overlayColumn(alone)).toBeUndefined();
    expect(overlaysOf(fakeExperiment, [{ clock: "sim", doubt: "not run" }], {})).toEqual([]);
  });
});
