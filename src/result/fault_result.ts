/** What a result tells of a fault that was made on purpose. */
import { z } from "zod";
import { kFaultKinds } from "../scenario/fault_kinds.js";

const amount = z.number().min(0);
const count = z.int().min(0);
const open = z.looseObject;

export const faultResultSchema = open({
  device: z.string().describe("Host or switch."),
  port: z.string().optional().describe("Device at the other end of its port, where the scenario names it."),
  direction: z.literal("out").optional().describe("Present where it was made to frames that leave there."),
  kind: z.enum(kFaultKinds).describe("Kind."),
  at_s: amount.describe("Its beginning, from the start of traffic, s."),
  for_s: amount.optional().describe("Its length, s; absent: until the end."),
  matched: count.describe("Frames that matched; of `pause` and `down` as `hits`."),
  hits: count.describe(
    "Frames that it was made to; of `pause` those that asked for one, of `down` how often the link went down.",
  ),
  recovery_s: amount
    .optional()
    .describe(
      "Time from its end (of one without an end from its beginning) to the first interval of the series in which all flows with series together have 90% of the goodput that they had before it, s. Absent: never, or there was none before.",
    ),
});
