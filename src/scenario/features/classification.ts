/** Priorities of frames that arrive: by their DSCP, their PCP, or the port. */
import { z } from "zod";
import { choice, type Full, field, integer, section } from "../../base/fields.js";
import type { SwitchFeature } from "./feature.js";

const dscpKey = z.string().regex(/^([0-9]|[1-5][0-9]|6[0-3])$/, { error: "a DSCP is a number from 0 to 63" });

export const kClassificationFields = {
  trust: choice("What gives a frame its priority.", ["dscp", "pcp", "port-default"], "dscp"),
  dscp_map: field(
    z.union([z.enum(["nvidia", "sonic-azure"]), z.record(dscpKey, z.int().min(0).max(7))]),
    "Priority of each DSCP: `nvidia` (DSCP / 8), `sonic-azure`, or a mapping such as {26: 3, 48: 6}, others 0.",
    "nvidia",
  ),
  default_priority: integer("Priority of frames that carry no mark which `trust` believes.", 0, 7, 0),
};
const written = section(kClassificationFields);
type Written = Full<typeof written>;

export interface Classification extends Omit<Written, "dscp_map"> {
  /** Priority per DSCP, 64 entries. */
  dscp_map: number[];
}

export function resolveDscpMap(input: Written["dscp_map"]): number[] {
  if (input === "nvidia") return Array.from({ length: 64 }, (_, dscp) => dscp >> 3);
  // The map is SONiC's DSCP_TO_TC_MAP|AZURE.
  const map = Array<number>(64).fill(input === "sonic-azure" ? 1 : 0);
  const pairs = input === "sonic-azure" ? { 3: 3, 4: 4, 5: 2, 8: 0, 46: 5, 48: 6 } : input;
  for (const [dscp, priority] of Object.entries(pairs)) map[Number(dscp)] = priority;
  return map;
}

export const kClassification = {
  native: ({ trust, dscp_map, default_priority }) => ({
    priority_map: {
      trust: trust === "port-default" ? ("port" as const) : trust,
      dscp: dscp_map,
      pcp: [0, 1, 2, 3, 4, 5, 6, 7],
      fallback: default_priority,
    },
  }),
} satisfies SwitchFeature<Classification>;
