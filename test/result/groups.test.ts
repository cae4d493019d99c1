import { expect, it } from "vitest";
import type { FlowCompletion } from "../../src/result/completions.js";
import { groupResults } from "../../src/result/groups.js";
import type { Flow } from "../../src/scenario/types.js";

it("counts flows by their traffic entry, and the transfers that began after the warm-up", () => {
  const flows = ["users", "rebuild", "users"].map((group) => ({ group }) as Flow);
  const transfer = (flow: number, bytes: number, start_ns: number, end_ns: number) =>
    ({ flow, bytes, start_ns, end_ns }) as FlowCompletion;
  const table = [
    transfer(0, 1000, 0, 500),
    transfer(0, 1000, 1000, 2000),
    transfer(2, 1000, 1500, 2000),
    transfer(2, 3000, 2000, 3000),
  ];
  const groups = groupResults({ flows, warmup: 1000 }, [3e9, 5e9, 1e9], table);
  expect(Object.keys(groups)).toEqual(["users", "rebuild"]);
  expect(groups.users).toEqual({
    flows: 2,
    goodput_bps: { mean: 2e9, min: 1e9, p10: 1e9, p50: 1e9, max: 3e9 },
    transfers: { count: 3, throughput_bps: { mean: 16e9, min: 8e9, p10: 8e9, p50: 16e9, max: 24e9 } },
  });
  expect(groups.rebuild).toEqual({
    flows: 1,
    goodput_bps: { mean: 5e9, min: 5e9, p10: 5e9, p50: 5e9, max: 5e9 },
  });
});
