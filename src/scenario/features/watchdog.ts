/** PFC watchdog: egress queues that a peer pauses without end, as in SONiC. */
import { choice, type Full, flag, section, time } from "../../base/fields.js";
import type { SwitchFeature } from "./feature.js";

export const watchdogSchema = section({
  enabled: flag("Look for egress queues that a peer pauses without end.", false),
  detection_time: time(
    "How long a queue has frames, is paused and sends nothing, until that is a storm; noticed up to a quarter later.",
    { default: "200ms", min: 1_000, max: 60e9 },
  ),
  restoration_time: time("How long nobody asks for a pause, until the storm is over.", {
    default: "200ms",
    min: 1_000,
    max: 60e9,
  }),
  action: choice(
    "What becomes of the frames of a queue in a storm. `drop`: those that wait and those that come are lost; `forward`: they are sent, as if there were no pauses; `alert`: they wait, and the storm is counted.",
    ["drop", "forward", "alert"],
    "drop",
  ),
});

export const kWatchdog = {
  native: ({ pfc_watchdog: { enabled, detection_time, restoration_time, action } }) => ({
    ...(enabled && { pfc_watchdog: { detection_time, restoration_time, action } }),
  }),
  report: ({ pfc_watchdog }) => ({ pfc_watchdog }),
} satisfies SwitchFeature<{ pfc_watchdog: Full<typeof watchdogSchema> }>;
