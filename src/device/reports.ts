/** Parts of what devices tell over a control socket. */

import type { TrafficClasses } from "../scenario/types.js";
import type { QosReport } from "./protocol.js";

const kPriorities = 8;

/** @param headroom By priority. */
export function qosReport(
  { scheduler, trust, dscp_map, default_priority, pfc }: TrafficClasses,
  headroom: (priority: number) => number,
): QosReport {
  return {
    scheduler,
    trust,
    dscp_map,
    default_priority,
    pfc_priorities: pfc.enabled ? pfc.priorities : [],
    headroom: Array.from({ length: kPriorities }, (_, priority) => headroom(priority)),
  };
}

/** "02:57:45:00:00:01". */
export function macText(mac: number): string {
  return mac
    .toString(16)
    .padStart(12, "0")
    .replace(/..(?!$)/g, "$&:");
}
