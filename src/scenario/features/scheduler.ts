/** The order in which priorities leave a port: some strictly first, the others by deficit weighted round robin. */
import { z } from "zod";
import { type Full, field, priorities, section } from "../../base/fields.js";
import { kPriorities } from "../../wire/priority.js";
import { mask, type SwitchFeature } from "./feature.js";

const priorityKey = z.string().regex(/^[0-7]$/, { error: "a priority is a number from 0 to 7" });

export const schedulerSchema = section({
  strict: priorities("Priorities served first, the highest number before the others.", [6]),
  weights: field(
    z.record(priorityKey, z.int().min(1).max(100)),
    "DWRR weights of the other priorities; an unlisted one has weight 1. 1 to 100.",
    { "0": 50, "3": 50 },
  ),
});

/** Scheduler in full. `weights` has one DWRR weight per priority 0..7; those of strict priorities are not used. */
export interface SchedulerConfig {
  strict: number[];
  weights: number[];
}

export function resolveScheduler({ strict, weights }: Full<typeof schedulerSchema>): SchedulerConfig {
  return { strict, weights: kPriorities.map((priority) => weights[String(priority)] ?? 1) };
}

export const kScheduler = {
  native: ({ scheduler }) => ({ scheduler: { strict: mask(scheduler.strict), weights: scheduler.weights } }),
} satisfies SwitchFeature<{ scheduler: SchedulerConfig }>;
