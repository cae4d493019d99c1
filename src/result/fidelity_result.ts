// Whether a run means anything, as a result says it.
import { z } from "zod";

const count = z.int().min(0);
const amount = z.number().min(0);

/** A loose object: a reader must accept fields that a later version adds. */
const open = z.looseObject;

export const fidelitySchema = open({
  valid: z
    .boolean()
    .describe(
      "False: this host, not the network, was the bottleneck, the run is not whole, or nothing was sent in it. The exit status is then 3, and the result means nothing.",
    ),
  reasons: z.array(z.string()).describe("Why the run is not valid, one sentence each."),
  loop_gap_us: open({ p50: amount, p99: amount, max: amount }).describe(
    "`p50`, `p99`, `max` of the time between the starts of two turns of the poll loop, sleep for want of work left out, us. 0 in `sim` and `model`.",
  ),
  loop_gap_max_at_s: amount
    .optional()
    .describe("Of `wire`: when the longest of these gaps began, s from the start of traffic, as meant."),
  cpu_wait_ms: amount
    .optional()
    .describe(
      "Of `wire`: how long the poll thread that waited most was ready to run while other threads had its CPU, ms of wall time; 0 where the kernel does not tell. Gaps beyond that are of interrupts, or of the machine that a virtual one runs on.",
    ),
  timer_lateness_us: open({ p99: amount, max: amount })
    .optional()
    .describe("Of `wire`: `p99`, `max` of how long after its deadline a turn came, us."),
  host_drops: count.describe(
    "Frames that the host lost: receive ring overruns, frames longer than a ring slot, refused transmissions.",
  ),
  completion_delay_us: amount
    .optional()
    .describe(
      "Of `wire`, when messages were complete: about how much longer, at least, each of them took because the devices on its way, and on that of its acknowledgement, look at frames only once in a turn of their poll loops; us as meant. The run is not valid where it is more than a quarter of the median time of all messages, also those of flows without an end.",
    ),
  stragglers: count
    .optional()
    .describe(
      "Of `wire`: frames taken later than their arrival time, because they were read too late. Not a reason by itself.",
    ),
  capture_dropped: count
    .optional()
    .describe("Of `wire`: frames that passed but are missing in a capture file. Not a reason by itself."),
  capture_errors: z
    .array(z.string())
    .optional()
    .describe(
      "Of `wire`: capture files that end early, each with the reason, such as a full disk. Not a reason by itself.",
    ),
  tuning: z
    .array(z.string())
    .optional()
    .describe("Of `wire`: what the host did not allow (priority, locked memory, pinning). Not a reason by itself."),
  varies: z
    .array(z.string())
    .optional()
    .describe(
      "Of `sim`: why another run of the same scenario gives another result, one sentence each. Absent: it gives the same. Not a reason by itself.",
    ),
  changes: z
    .array(open({ at_s: amount, late_us: amount }))
    .optional()
    .describe(
      "Where the scenario has `changes`: when each was due (`at_s`), and how late it was made (`late_us`, wall time).",
    ),
});
