/** Counts of a whole network over a whole run. */
import { sum } from "simple-statistics";
import type { Result } from "./result.js";

export type NetworkCounts = ReturnType<typeof networkCounts>;

export function networkCounts({ switches, nics, flows }: Pick<Result, "switches" | "nics" | "flows">) {
  const devices = Object.values(switches);
  const all = (counts: readonly Readonly<Record<string, number>>[]) => sum(counts.flatMap((one) => Object.values(one)));
  return {
    ecn_marked: sum(devices.map((one) => one.ecn_marked)),
    cnp_sent: sum(Object.values(nics).map((nic) => nic.np_cnp_sent)),
    cnm_sent: sum(devices.map((one) => one.cnm_sent ?? 0)),
    pfc_sent: all(devices.map((one) => one.pfc_sent)),
    drops: all(devices.map((one) => one.drops)),
    lost: sum(flows.map((flow) => flow.lost)),
  };
}
