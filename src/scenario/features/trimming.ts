/** Packet trimming, as in SONiC: frames of lossy classes that find no room go on as headers. */
import { type Full, flag, integer, priorities, section, size, type With } from "../../base/fields.js";
import type { Findings, Where } from "../../base/findings.js";
import { kMostMemory } from "./buffer.js";
import type { Classification } from "./classification.js";
import { mask, type SwitchFeature } from "./feature.js";
import type { PfcConfig } from "./pfc.js";

export const trimmingSchema = section({
  enabled: flag("Trim frames that find no room, instead of dropping them.", false),
  priorities: priorities(
    "Lossy priorities whose frames are trimmed (SONiC: `packet_discard_action: trim` of a queue's buffer profile).",
    [0],
  ),
  size: size("What is left of a frame, from the Ethernet header on, without FCS: all headers of RoCEv2 fit in.", {
    default: "128B",
    min: 128,
    max: 4096,
  }),
  dscp: integer("DSCP of what is left; by it receivers know it, so data has another.", 0, 63, 40),
  queue: integer(
    "Priority by which it goes on: lossy, and none of `priorities`; best one that is served strictly. Default: what `dscp_map` makes of `dscp`.",
    0,
    7,
  ),
  buffer: size(
    "Most that this queue holds at a port, in place of `lossy_alpha` times the free buffer. Default: as any lossy queue.",
    { min: 1_000, max: kMostMemory },
  ),
});

export type TrimmingConfig = With<Full<typeof trimmingSchema>, { queue: number }>;

export function resolveTrimming(trimming: Full<typeof trimmingSchema>, dscpMap: readonly number[]): TrimmingConfig {
  return { ...trimming, queue: trimming.queue ?? dscpMap[trimming.dscp] ?? 0 };
}

export interface Needs extends Classification {
  name: string;
  pfc: PfcConfig;
  trimming: TrimmingConfig;
}

function checkTrimming({ name, pfc, trimming, trust, dscp_map }: Needs, at: Where, found: Findings): void {
  if (!trimming.enabled) return;
  const { priorities, dscp, queue } = trimming;
  const lossless = pfc.enabled ? pfc.priorities : [];
  const never = priorities.filter((priority) => lossless.includes(priority));
  if (priorities.length === 0) {
    found.problem(at("trimming", "priorities"), "there is none, so nothing is trimmed", "name lossy priorities");
  }
  if (never.length > 0) {
    const message = `${never.join(", ")} is lossless: its frames wait, and are not trimmed`;
    found.problem(at("trimming", "priorities"), message, "name lossy priorities, or take it out of pfc.priorities");
  }
  if (lossless.includes(queue) || priorities.includes(queue)) {
    const why = lossless.includes(queue) ? "is lossless" : "is one of those that are trimmed";
    found.problem(
      at("trimming", "queue"),
      `priority ${queue}, by which trimmed frames go on, ${why}`,
      "give a lossy priority of its own, or a dscp that dscp_map gives one",
    );
  } else if (trust !== "dscp") {
    found.warn(`switch ${name}: trusts ${trust}, so it takes frames that another switch has trimmed for others`);
  } else if (dscp_map[dscp] !== queue) {
    found.warn(
      `switch ${name}: dscp_map gives DSCP ${dscp} of trimmed frames priority ${dscp_map[dscp]}, not trimming.queue ` +
        `${queue}: behind the switch that trimmed them they are in another queue`,
    );
  }
}

export const kTrimming = {
  check: (needs, _, at, found) => checkTrimming(needs, at, found),
  native: ({ trimming: { enabled, priorities, size, dscp, queue, buffer } }) => ({
    ...(enabled && {
      trimming: { priorities: mask(priorities), size, dscp, queue, ...(buffer !== undefined && { buffer }) },
    }),
  }),
} satisfies SwitchFeature<Needs>;
