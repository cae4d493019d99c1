/** What a NIC tells of its queue pairs, in daemons and labs alike. */
import { expect, it } from "vitest";
import { queuePairReport } from "../../src/device/reports.js";
import type { QueuePairState } from "../../src/native/types.js";

it.each([
  ["dcqcn", 0.5],
  ["qcn", null],
  ["none", null],
] as const)("under %s alpha is %s", (algorithm, alpha) => {
  const pair: QueuePairState = {
    name: "to-b",
    qpn: 17,
    remote_qpn: 17,
    state: "ready",
    stage: "fast_recovery",
    rate: 1e9,
    target_rate: 1e9,
    alpha: 0.5,
    limited: true,
  };
  expect(queuePairReport([pair], [{ peer: "b", priority: 3 }], { algorithm })[0]?.alpha).toBe(alpha);
});
