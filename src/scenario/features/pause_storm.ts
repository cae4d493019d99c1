/** A fault to try a fabric with: a NIC that pauses its switch without end. */
import { type Full, integer, priorities, section, time } from "../../base/fields.js";
import { formatTime } from "../../base/units.js";
import { type HostFeature, mask } from "./feature.js";

export const pauseStormSchema = section({
  priorities: priorities("Priorities to pause. None: no storm.", []),
  quanta: integer(
    "How long each frame pauses, in quanta of 512 bit times of the link; the next one comes when half of that has passed.",
    1,
    65_535,
    65_535,
  ),
  start: time("When it begins, from the start.", { default: "0s" }),
  stop: time("When it ends. Default: never."),
});

export const kPauseStorm = {
  check: (host, at, found) => {
    const { start, stop } = host.pause_storm;
    if (stop !== undefined && stop <= start) {
      const message = `${formatTime(stop)} is not after start, ${formatTime(start)}`;
      found.problem(at("pause_storm", "stop"), message, "stop must be later than start");
    }
  },
  native: ({ pause_storm: { priorities, quanta, start, stop } }) => ({
    ...(priorities.length > 0 && {
      pause_storm: {
        priorities: mask(priorities),
        quanta,
        start,
        ...(stop !== undefined && { stop }),
      },
    }),
  }),
} satisfies HostFeature<{ pause_storm: Full<typeof pauseStormSchema> }>;
