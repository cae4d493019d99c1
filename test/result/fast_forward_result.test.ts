import { describe, expect, it } from "vitest";
import {
  fastForwardLine,
  fastForwardReasons,
  fastForwardResult,
  fastForwardResultSchema,
  sharesWarning,
} from "../../src/result/fast_forward_result.js";

const stretch = (from: number, to: number, goodput: number, queues: number, judged = 1e6) => ({
  ...{ from, to, observed: 2e6, judged, agrees: queues <= 0.03 },
  ...{ goodput, shares: 0.2, marks: 0, queues },
});

describe("what is told of skipped time", () => {
  const report = {
    window: 1e5,
    share: 0.02,
    reason: "",
    stretches: [stretch(1e7, 3e7, 0.001, 0.01), stretch(4e7, 1e8, 0.005, 0.05)],
  };

  it("weighs errors by the time skipped", () => {
    const result = fastForwardResult(report, 0.03, 1e8);
    expect(fastForwardResultSchema.parse(result)).toEqual(result);
    expect(result.verified).toEqual({ asked: 0.02, reached: 0.025 });
    expect(result).toMatchObject({ skipped_s: 0.08, skipped: 0.8, judged_s: 0.002, jumps: 2, judged: 2, disagreed: 1 });
    expect(result.errors?.goodput).toEqual({ mean: expect.closeTo(0.004), worst: 0.005 });
    expect(result.errors?.queue).toEqual({ mean: expect.closeTo(0.04), worst: 0.05 });
    expect(fastForwardLine(result)).toBe(
      "fast-forward: 80.0% of the time skipped in 2 stretches, 2.5% of it verified (2.0% asked), measured errors: goodput 0.4%, single flows 20.0%, marks 0.0%, queue 4.0%",
    );
  });

  it("makes a run invalid whose mean error is beyond the bound", () => {
    expect(fastForwardReasons(fastForwardResult(report, 0.03, 1e8))).toEqual([
      "skipped time is off by 4.0% in queue, more than the bound of 3.0%: use --fast-forward off",
    ]);
    expect(fastForwardReasons(fastForwardResult(report, 0.05, 1e8))).toEqual([]);
  });

  it("warns of flows that take turns", () => {
    expect(sharesWarning(fastForwardResult(report, 0.03, 1e8))).toContain("differ by 20.0%");
    expect(sharesWarning(fastForwardResult(report, 0.3, 1e8))).toBeUndefined();
  });

  it("counts a stretch up to where the run was stopped, and no error where nothing was compared", () => {
    const result = fastForwardResult({ ...report, stretches: [stretch(1e7, 3e7, 0, 0, 0)] }, 0.03, 2e7);
    expect(result).toMatchObject({ skipped_s: 0.01, judged: 0, stretches: [{ from_s: 0.01, to_s: 0.02 }] });
    expect(result.errors).toBeUndefined();
    expect(fastForwardLine(result)).toBe(
      "fast-forward: 50.0% of the time skipped in 1 stretch, 0.0% of it verified (2.0% asked), errors not measured",
    );
  });

  it("says why nothing was skipped", () => {
    const result = fastForwardResult({ reason: "frames are traced", share: 0.02, stretches: [] }, 0.03, 1e8);
    expect(result.verified).toEqual({ asked: 0.02, reached: 0 });
    expect(fastForwardLine(result)).toBe("fast-forward: nothing was skipped: frames are traced");
  });
});
