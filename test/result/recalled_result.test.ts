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
  ...{ contended: 0.2, judged_contended: 4, contended_error: 0.002 },
  ...{ share: 0, judged_bytes: 4e8, message_error: 0.012, message_p99: 0.04 },
};

describe("what is told of phases that came from memory", () => {
  it("is parts of all bytes, and measured errors", () => {
    const result = recalledResult(learned, 0.03);
    expect(recalledResultSchema.parse(result)).toEqual(result);
    expect(result).toMatchObject({ skipped: 0.9, messages: 1000, messages_skipped: 900, left: 2, left_part: 0.005 });
    expect(result.errors).toEqual({
      ...{ mean: 0.01, bias: -0.004, worst: 0.05, contended: 0.002 },
      messages: { mean: 0.012, p99: 0.04 },
    });
    // 0.4 of the 4 GB that were known.
    expect(result.verified).toEqual({ reached: 0.1 });
    expect(result).not.toHaveProperty("reason");
    expect(recalledLine(result)).toBe(
      "fast-forward: 90.0% of the bytes from memory, 350 of 400 phases, 10.0% of it verified, measured error 1.0%, worst 5.0%, of completion times 1.2%, p99 4.0%",
    );
    const asked = recalledResult({ ...learned, share: 0.08 }, 0.03);
    expect(asked.verified).toEqual({ asked: 0.08, reached: 0.1 });
    expect(recalledLine(asked)).toContain(", 10.0% of it verified (8.0% asked), ");
  });

  it("makes a run invalid whose error, or whose part that was made up, is beyond the bound", () => {
    expect(recalledReasons(recalledResult(learned, 0.03))).toEqual([]);
    // What all phases have, and three times what varies.
    expect(recalledReasons(recalledResult(learned, 0.021))).toEqual([
      "phases that came from memory are off by 1.0%, and the slowest of many by 2.2%, more than the bound of 2.1%: use --fast-forward off",
    ]);
    expect(recalledReasons(recalledResult({ ...learned, left_bytes: 1.3e8 }, 0.03))).toEqual([
      "3.3% of all bytes were simulated from the middle of a message on, more than the bound of 3.0%: use --fast-forward off",
    ]);
    for (const [judged, judged_messages] of [
      [2, 400],
      [19, 19],
    ] as const) {
      expect(recalledReasons(recalledResult({ ...learned, judged, judged_messages }, 0.03))).toEqual([
        `90.0% of all bytes came from memory, and ${judged} phases of ${judged_messages} messages were compared, of 3 and 20 that it takes: use --fast-forward off`,
      ]);
    }
    // What was simulated whole is as good as without.
    expect(recalledReasons(recalledResult({ ...learned, skipped_bytes: 0 }, 0.004))).toEqual([]);
  });

  it("makes a run invalid where flows contend, and it is not known that this ends alike each time", () => {
    const once = { ...learned, judged_contended: 2 };
    expect(recalledReasons(recalledResult(once, 0.03))).toEqual([
      "flows that contend took 20.0% of the time of all messages, and 2 such phases came again, of 3 that it takes: what becomes of them may be chance: use --fast-forward off",
    ]);
    expect(recalledReasons(recalledResult({ ...once, contended: 0.02 }, 0.03))).toEqual([]);
    expect(recalledReasons(recalledResult({ ...learned, contended: 0.4 }, 0.03))).toEqual([
      "flows that contend and were simulated took 40.0% of the time of all messages, more than a third: rates that contention left behind are not remembered: use --fast-forward off",
    ]);
    expect(recalledReasons(recalledResult({ ...learned, contended_error: 0.04 }, 0.03))).toEqual([
      "phases of flows that contend ended otherwise by 4.0%, more than the bound of 3.0%: use --fast-forward off",
    ]);
  });

  it("says why nothing was skipped, or from some time on nothing more, and when nothing was compared", () => {
    const reason = "frames are traced";
    expect(recalledLine(recalledResult({ ...learned, reason, skipped_bytes: 0 }, 0.03))).toBe(
      "fast-forward: nothing was skipped: frames are traced",
    );
    expect(recalledLine(recalledResult({ ...learned, skipped_bytes: 0 }, 0.03))).toBe(
      "fast-forward: nothing was skipped: no phase came again",
    );
    const result = recalledResult(
      { ...learned, reason: "phases did not repeat themselves", judged: 0, judged_bytes: 0 },
      0.03,
    );
    expect(result).not.toHaveProperty("errors");
    expect(recalledLine(result)).toBe(
      "fast-forward: 90.0% of the bytes from memory, 350 of 400 phases, 0.0% of it verified, error not measured; then nothing more: phases did not repeat themselves",
    );
  });
});
