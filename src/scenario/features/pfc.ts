/** Priority flow control (IEEE 802.1Qbb), and PAUSE of a link (IEEE 802.3x) in its place. */
import { type Full, flag, priorities, section } from "../../base/fields.js";
import type { Findings, Where } from "../../base/findings.js";
import { kPriorities } from "../../wire/priority.js";
import { mask, type SwitchFeature } from "./feature.js";

export const pfcSchema = section({
  enabled: flag("Send and obey priority flow control.", true),
  priorities: priorities("Lossless priorities.", [3]),
  link_pause: flag(
    "IEEE 802.3x where `enabled` is false: peers are stopped by PAUSE frames, at all priorities, while one of them is above its threshold; so all are lossless, with headroom for 8. PAUSE frames that arrive are obeyed, with this or without.",
    false,
  ),
});

/** PFC in full. `enabled` and `priorities` also hold for PAUSE, which is for all priorities; `by`: the frames that stop peers. */
export type PfcConfig = Full<typeof pfcSchema> & { by: "pfc" | "pause" };

export function resolvePfc(pfc: Full<typeof pfcSchema>): PfcConfig {
  return pfc.link_pause && !pfc.enabled
    ? { ...pfc, enabled: true, priorities: [...kPriorities], by: "pause" }
    : { ...pfc, by: "pfc" };
}

/** Finds ports with both: a port has PFC, or PAUSE, or neither (IEEE 802.1Q clause 36: a link has one of the two). */
export function checkFlowControl({ pfc }: { pfc: PfcConfig }, at: Where, found: Findings): void {
  if (!pfc.link_pause || pfc.by === "pause") return;
  const hint = "a link has one of the two: give pfc.enabled: false as well, or take link_pause out";
  found.problem(at("pfc", "link_pause"), "PAUSE frames instead of PFC, but PFC is on", hint);
}

export const kPfc = {
  check: (needs, _, at, found) => checkFlowControl(needs, at, found),
  native: ({ pfc }) => ({
    pfc_priorities: pfc.enabled ? mask(pfc.priorities) : 0,
    ...(pfc.by === "pause" && { link_pause: true }),
  }),
  report: ({ pfc }) => ({ pfc_priorities: pfc.enabled ? pfc.priorities : [] }),
} satisfies SwitchFeature<{ pfc: PfcConfig }>;
