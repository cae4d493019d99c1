import { describe, expect, it } from "vitest";
import type { Check } from "../../src/experiments/experiment.js";
import { type ClockEvidence, judge } from "../../src/experiments/verdict.js";
import { fakeExperiment } from "./fakes.js";

const kNear = { clock: "sim", within: 0.1, margin: 0.5 } as const;

function ruling(checks: readonly Check[], ...evidence: readonly ClockEvidence[]) {
  const experiment = {
    ...fakeExperiment,
    statements: [{ quote: "So it is.", where: "here", reading: "as it says", checks }],
  };
  return judge(experiment, evidence)[0]?.verdicts.map(({ ruling, why }) =>
    why === undefined ? ruling : `${ruling}: ${why}`,
  );
}

const shows = (clock: ClockEvidence["clock"], fast: number, doubt?: string): ClockEvidence => ({
  clock,
  observation: { values: { fast }, plots: [] },
  ...(doubt !== undefined && { doubt }),
});

describe("judge", () => {
  it("takes bounds as inclusive, and all checks of a statement", () => {
    expect(ruling([{ quantity: "fast", min: 10 }], shows("sim", 10))).toEqual(["holds"]);
    expect(ruling([{ quantity: "fast", min: 10 }], shows("sim", 9.99))).toEqual(["falls short"]);
    expect(ruling([{ quantity: "fast", max: 10 }], shows("sim", 10.01))).toEqual(["falls short"]);
    const range = { quantity: "fast", min: 1, max: 2 };
    expect(ruling([{ quantity: "fast", min: 0 }, range], shows("sim", 3))).toEqual(["falls short"]);
  });

  it("takes what did not happen for beyond every upper bound, and above every lower one", () => {
    const never = Number.POSITIVE_INFINITY;
    expect(ruling([{ quantity: "fast", max: 1e12 }], shows("sim", never))).toEqual(["falls short"]);
    expect(ruling([{ quantity: "fast", min: 10, max: 20 }], shows("sim", never))).toEqual(["falls short"]);
    expect(ruling([{ quantity: "fast", min: 10 }], shows("sim", never))).toEqual(["falls short"]);
  });

  it("judges each clock by itself", () => {
    expect(ruling([{ quantity: "fast", min: 10 }], shows("wire", 9), shows("sim", 11))).toEqual([
      "falls short",
      "holds",
    ]);
  });

  it("does not judge what was not measured, not run, or is invalid", () => {
    const check = { quantity: "slow", min: 1 };
    expect(ruling([check], shows("sim", 1))).toEqual(["not judged: goodput, slow: not measured on sim"]);
    expect(ruling([check], { clock: "sim", doubt: "run fast: stopped" })).toEqual(["not judged: run fast: stopped"]);
    expect(ruling([{ quantity: "fast", min: 0 }], shows("sim", 1, "run fast: too slow"))).toEqual([
      "not judged: run fast: too slow",
    ]);
    expect(ruling([], shows("sim", 1))).toEqual(["not judged: nothing that Weir measures"]);
  });

  it("compares with another clock by share or margin, whichever is more", () => {
    const near = [{ quantity: "fast", near: kNear }];
    const other = "not judged: says how the other clock compares with sim";
    expect(ruling(near, shows("wire", 110), shows("sim", 100))).toEqual(["holds", other]);
    expect(ruling(near, shows("wire", 111), shows("sim", 100))).toEqual(["falls short", other]);
    expect(ruling(near, shows("wire", 0.4), shows("sim", 0))).toEqual(["holds", other]);
    expect(ruling(near, shows("wire", 0.6), shows("sim", 0))).toEqual(["falls short", other]);
    expect(ruling(near, shows("wire", 1))).toEqual(["not judged: needs sim as well: --on all"]);
    expect(ruling(near, shows("wire", 1), shows("sim", 1, "run fast: stopped"))?.[0]).toMatch(/^not judged: needs sim/);
  });

  it("names a quantity that the experiment does not have", () => {
    expect(() => ruling([{ quantity: "none", min: 0 }], shows("sim", 1))).toThrow("fake-fig1: no quantity none");
  });
});
