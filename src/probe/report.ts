/** Findings of `weir probe`, and their JSON form. */
import { z } from "zod";
import { kEcn } from "./roce_frame.js";

const ecn = z.enum(kEcn);

export const probeSchema = z.strictObject({
  address: z.string(),
  source: z.string().describe("Our address: a responder answers to the one that its queue pair is connected to."),
  qpn: z.int().describe("Queue pair that was probed."),
  ecn: ecn.describe("What the probes carried."),
  sent: z.int(),
  responder: z
    .enum(["answers", "refused", "silent"])
    .describe("refused: ICMP says that nobody has the port, or that there is no way to it."),
  path_ecn: z
    .enum(["survives", "changed", "unknown"])
    .describe("Do marks survive the path? A CNP for a CE packet proves it, and so does the header that ICMP quotes."),
  arrived_ecn: ecn.optional().describe("The ECN field as it arrived, where it is known."),
  answers: z.array(
    z.strictObject({
      kind: z.enum(["ack", "nak", "cnp", "icmp", "other"]),
      detail: z.string().describe("For people."),
      source: z.string(),
      time_ms: z.number().describe("Since the first probe."),
      ecn: ecn.optional().describe("Of the answer itself."),
      qpn: z.int().optional().describe("Queue pair of ours that it is for."),
      psn: z.int().optional(),
      icrc_ok: z.boolean().optional(),
    }),
  ),
  notes: z.array(z.string()),
});

/** One line of `weir probe --listen --json`. */
export const arrivalSchema = z.strictObject({
  time_ms: z.number().describe("Since listening began."),
  source: z.string(),
  destination: z.string(),
  opcode: z.int(),
  name: z.string(),
  qpn: z.int(),
  psn: z.int(),
  ecn,
  dscp: z.int(),
  ttl: z.int(),
  icrc_ok: z.boolean(),
});

export type ProbeReport = z.infer<typeof probeSchema>;
export type Answer = ProbeReport["answers"][number];
export type Arrival = z.infer<typeof arrivalSchema>;
