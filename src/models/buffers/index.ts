/** Planning of shared-buffer switches: `weir plan`. See docs/guides/planning.md. */

export { type Headroom, type HeadroomInput, headroomFor, kNanosecondsPerMetre } from "../../scenario/headroom.js";
export { type CheckedLink, checkPlan, type FindingKind, type PlanCheck, type PlanFinding } from "./check.js";
export { type EcnPlan, planEcn } from "./ecn.js";
export { type BufferPlan, type BufferPlanInput, planBuffers } from "./plan.js";
export { SWITCH_PROFILES, type SwitchProfile, type SwitchProfileName } from "./profiles.js";
