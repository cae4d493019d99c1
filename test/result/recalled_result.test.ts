import { describe, expect, it } from "vitest";
import {
  recalledLine,
  recalledReasons,
  recalledResult,
  recalledResultSchema,
} from "../../src/result/recalled_result.js";

const learned = {
  ...{
    reason: "",
    messages: 1000,
    skipped: 900,
    bytes: 4e9,
    skipped_bytes: 3.6e9,
    phases: 400,
    recalled: 350,
    known: 7,
  },
  ...{
    left: 2,
    left_bytes: 2e7,
    judged: 30,
    judged_messages: 45,
    stretches: 3,
    error: 0.01,
    bias: -0.004,
    worst: 0.05,
  },
};

describe("what is told of phases that came from memory", () => {
  it("is parts of all bytes, and measured errors", () => {
    const result = recalledResult(learned, 0.03);
    expect(recalledResultSchema.parse(result)).toEqual(result);
    expect(result).toMatchObject({ skipped: 0.9, messages: 1000, messages_skipped: 900, left: 2, left_part: 0.005 });
    expect(result.errors).toEqual({ mean: 0.01, bias: -0.004, worst: 0.05 });
    expect(result).not.toHaveProperty("reason");
    expect(recalledLine(result)).toBe(
      "fast-forward: 90.0% of the bytes from memory, 350 of 400 phases, measured error 1.0%, worst 5.0%",
    );
  });

  it("makes a run invalid whose error, or whose part that was made up, is beyond the bound", () => {
    expect(recalledReasons(recalledResult(learned, 0.03))).toEqual([]);
    expect(recalledReasons(recalledResult(learned, 0.004))).toEqual([
      "phases that came from memory are off by 1.0%, more than the bound of 0.4%: use --fast-forward off",
      "0.5% of all bytes were simulated from the middle of a message on, more than the bound of 0.4%: use --fast-forward off",
    ]);
    expect(recalledReasons(recalledResult({ ...learned, judged: 19 }, 0.03))).toEqual([
      "90.0% of all bytes came from memory, and 19 phases were compared, of 20 that it takes: use --fast-forward off",
    ]);
    // What was simulated whole is as good as without.
    expect(recalledReasons(recalledResult({ ...learned, skipped_bytes: 0 }, 0.004))).toEqual([]);
  });

  it("says why nothing was skipped, or from some time on nothing more, and when nothing was compared", () => {
    const reason = "frames are traced";
    expect(recalledLine(recalledResult({ ...learned, reason, skipped_bytes: 0 }, 0.03))).toBe(
      "fast-forward: nothing was skipped: frames are traced",
    );
    expect(recalledLine(recalledResult({ ...learned, skipped_bytes: 0 }, 0.03))).toBe(
      "fast-forward: nothing was skipped: no phase came again",
    );
    const result = recalledResult({ ...learned, reason: "phases did not repeat themselves", judged: 0 }, 0.03);
    expect(result).not.toHaveProperty("errors");
    expect(recalledLine(result)).toBe(
      "fast-forward: 90.0% of the bytes from memory, 350 of 400 phases, error not measured; then nothing more: phases did not repeat themselves",
    );
  });
});
