import { describe, expect, it } from "vitest";
import type { Check, Statement } from "../experiment.js";
import { type ClockEvidence, judge } from "../verdict.js";
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
    expect(ruling(near, shows("wire", 110), shows("sim", 100))).toEqual(["agrees", other]);
    expect(ruling(near, shows("wire", 111), shows("sim", 100))).toEqual(["differs", other]);
    expect(ruling(near, shows("wire", 0.4), shows("sim", 0))).toEqual(["agrees", other]);
    expect(ruling(near, shows("wire", 0.6), shows("sim", 0))).toEqual(["differs", other]);
    expect(ruling(near, shows("wire", 1))).toEqual(["not judged: needs sim as well: --on all"]);
    expect(ruling(near, shows("wire", 1), shows("sim", 1, "run fast: stopped"))?.[0]).toMatch(/^not judged: needs sim/);
  });

  it("says whom a statement was held against: wire and virtual time are one core, the model is not", () => {
    const nearModel = [{ quantity: "fast", near: { ...kNear, clock: "model" } }] as const;
    expect(ruling(nearModel, shows("sim", 100), shows("model", 100))?.[0]).toBe("holds");
    expect(ruling(nearModel, shows("sim", 100), shows("model", 1))?.[0]).toBe("falls short");
    expect(ruling([{ quantity: "fast", near: kNear }], shows("sim", 1), shows("model", 1))?.[1]).toBe(
      "not judged: compares real frames with virtual time",
    );
  });

  it("judges the median of several seeds, and says how far they go", () => {
    const seeds = [1, 30, 2].map((fast) => ({ values: { fast } }));
    const evidence: ClockEvidence = { clock: "sim", observation: { values: { fast: 2 }, plots: [], seeds } };
    const statements = [{ quote: "So.", where: "here", reading: "so", checks: [{ quantity: "fast", max: 3 }] }];
    const [verdict] = judge({ ...fakeExperiment, statements }, [evidence])[0]?.verdicts ?? [];
    expect(verdict?.ruling).toBe("holds");
    expect(verdict?.findings[0]?.measured).toBe("goodput, fast 2.00 Gb/s, with 3 seeds 1.00 to 30.00");
  });

  it("takes the median of how far each seed's curve is from another's", () => {
    const curve = (y: number) => ({ rate: { x: [0, 2], y: [y, y] } });
    const seeds = [1, 2, 9].map((y) => ({ values: {}, traces: curve(y) }));
    const sim: ClockEvidence = { clock: "sim", observation: { values: {}, plots: [], traces: curve(1), seeds } };
    const model: ClockEvidence = { clock: "model", observation: { values: {}, plots: [], traces: curve(0) } };
    const check = { trace: "rate", clock: "model", most: 2 } as const;
    expect(ruling([check], sim, model)?.[0]).toBe("holds");
    expect(ruling([{ ...check, most: 1.9 }], sim, model)?.[0]).toBe("falls short");
  });

  it("has a cause for what falls short, ours where none is given", () => {
    const cause = { id: "jump", by: "algorithm", what: "It jumps.", proof: "equation 5" } as const;
    const causes = (own?: Statement["cause"]) => {
      const checks = [{ quantity: "fast", min: 10 }];
      const statement = { quote: "So.", where: "here", reading: "so", checks, ...(own && { cause: own }) };
      const judged = judge({ ...fakeExperiment, statements: [statement] }, [shows("sim", 1), shows("model", 1)]);
      return judged[0]?.verdicts.map((verdict) => verdict.cause?.id);
    };
    expect(causes(cause)).toEqual(["jump", "jump"]);
    expect(causes({ model: cause })).toEqual(["unexplained", "jump"]);
    expect(causes()).toEqual(["unexplained", "unexplained"]);
  });

  it("names a quantity that the experiment does not have", () => {
    expect(() => ruling([{ quantity: "none", min: 0 }], shows("sim", 1))).toThrow("fake-fig1: no quantity none");
  });
});
