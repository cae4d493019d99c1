/** A fault that is made on purpose, in the terms of users: what a scenario, and a running device, are asked for alike. */
import { z } from "zod";
import { field, fraction, integer, rate, section, size, time } from "../base/fields.js";
import { kFaultKinds } from "./fault_kinds.js";

/** AETH syndromes of NAKs by words (IBTA volume 1, 9.7.5.2): not ready, come again in 0.64 ms; and reasons. */
export const kNakCodes = {
  rnr: 0x2c,
  sequence: 0x60,
  "invalid-request": 0x61,
  "remote-access": 0x62,
  "remote-operation": 0x63,
} as const;

/** Statuses with which queue pairs fail, by the words of ibv_wc_status (IBTA volume 1, 11.6.2), without IBV_WC_ and _ERR. */
export const kFaultStatuses = {
  "loc-len": 1,
  "loc-qp-op": 2,
  "loc-prot": 4,
  "wr-flush": 5,
  "mw-bind": 6,
  "bad-resp": 7,
  "loc-access": 8,
  "rem-inv-req": 9,
  "rem-access": 10,
  "rem-op": 11,
  "retry-exc": 12,
  "rnr-retry-exc": 13,
  "rem-abort": 16,
  fatal: 19,
  general: 21,
} as const;

/** DSCP of trimmed packets, and priorities that are paused, where a fault does not say. */
export const kTrimDscp = 40;
export const kPausedPriorities = [3];

const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
/** Opcodes of the BTH by words (IBTA volume 1, table 38, and annex 17 for the CNP): of reliable and unreliable connections, and datagrams. */
export const kOpcodes: Readonly<Record<string, readonly number[]>> = {
  send: [...range(0x00, 0x05), 0x16, 0x17, ...range(0x20, 0x25), 0x64, 0x65],
  write: [...range(0x06, 0x0b), ...range(0x26, 0x2b)],
  "read-request": [0x0c],
  "read-response": range(0x0d, 0x10),
  ack: [0x11],
  atomic: [0x13, 0x14],
  "atomic-ack": [0x12],
  cnp: [0x81],
};

/** Longest time of a fault, ns: a day. */
export const kMostTime = 86_400e9;
const opcode = z.union([z.enum(Object.keys(kOpcodes) as [string, ...string[]]), z.int().min(0).max(0xff)], {
  error: `an opcode is ${Object.keys(kOpcodes).join(", ")}, or its number`,
});

/** Fields of a fault. @param endpoint How senders and receivers are named. */
export const faultShape = <T extends z.ZodType>(endpoint: T, named: string) => ({
  kind: z.enum(kFaultKinds).meta({ description: "What is done to frames, to queue pairs, or to the link." }),
  direction: field(z.enum(["in", "out"]), "Frames that come in at the port, or those that leave there. Default: in."),
  opcode: field(z.array(opcode).min(1).max(64), "Opcodes of RoCEv2 packets that match. Default: all frames."),
  qp: integer("Queue pair that matching packets are for.", 0, 0xff_ffff),
  source_port: integer("UDP source port of matching packets.", 0, 0xffff),
  from: field(endpoint, `${named} of the sender of matching packets.`),
  to: field(endpoint, `${named} of their receiver.`),
  share: fraction("Share of those that match.", { default: 1 }),
  every: integer("One of so many that match, the last of them.", 1, 0xffff_ffff, 1),
  count: integer("Frames after which it is over.", 1, Number.MAX_SAFE_INTEGER),
  seed: integer("Seed of the share: the same frames have the same fate.", 0, Number.MAX_SAFE_INTEGER, 1),
  for: time("Time after which it is over. Default: until it is ended.", { min: 1_000, max: kMostTime }),
  delay: time("Time that a frame is held back, kind delay: others overtake it.", { min: 1_000, max: kMostTime }),
  code: field(
    z.enum(Object.keys(kNakCodes) as [keyof typeof kNakCodes]),
    "Reason of the NAK that an acknowledgement, or a response of RDMA READ or an atomic, becomes, kind nak.",
  ),
  status: field(
    z.enum(Object.keys(kFaultStatuses) as [keyof typeof kFaultStatuses]),
    "Status of the oldest send of the queue pair that fails, kind error: ibv_wc_status in words. Default: wr-flush, all are flushed.",
  ),
  rate: rate("Rate at which the host takes what comes in, its frames from the Ethernet header on, kind slow.", {
    min: 1_000,
  }),
  size: size("What is left of a frame, from its Ethernet header on, kind trim. Default: 128B.", {
    min: 128,
    max: 4096,
  }),
  dscp: integer(`DSCP of what is left, kind trim. Default: ${kTrimDscp}.`, 0, 63),
  priorities: field(
    z.array(z.int().min(0).max(7)).min(1).max(8),
    "Priorities whose pauses are asked for by PFC, kind pause. Default: [3].",
  ),
  down: time("Time that the link is down each time, kind down. Default: it stays down.", {
    min: 1_000,
    max: kMostTime,
  }),
  up: time("Time that the link is up in between, kind down with `down`.", { min: 1_000, max: kMostTime }),
});

/** A fault of a scenario, before its fields are looked at together. */
export const scenarioFaultSchema = section({
  at: time("Time of its beginning, from the start of traffic.", { default: "0ms" }),
  device: z.string().meta({ description: "Host or switch at whose port frames come in." }),
  port: field(
    z.string(),
    "Device at the other end of that port. Default: a host's only one; of kind down all of them.",
  ),
  ...faultShape(z.string(), "Host"),
  reroute: time(
    "How long after that routes follow, each time the link goes down or comes back, kind down. Default: never.",
    {
      max: 10e9,
    },
  ),
});
export const scenarioFault = scenarioFaultSchema.superRefine((fault, context) => {
  // A scenario has both ends of a link, so it makes pauses that leave at the other one.
  refuseMisfits(fault.kind === "pause" ? { ...fault, direction: undefined } : fault, context);
  if (fault.reroute === undefined || fault.kind === "down") return;
  const message = `not with kind ${fault.kind}`;
  context.addIssue({ code: "custom", message, path: ["reroute"], params: { hint: "it is of kind down" } });
});

/** Finds fields that do not go together. */
export function refuseMisfits(fault: Belonging, context: Pick<z.RefinementCtx, "addIssue">): void {
  for (const { field, message, hint } of misfits(fault)) {
    context.addIssue({ code: "custom", message, path: [field], params: { hint } });
  }
}

interface Misfit {
  field: string;
  message: string;
  hint: string;
}

type Belonging = Partial<Record<keyof ReturnType<typeof faultShape>, unknown>> & { kind: (typeof kFaultKinds)[number] };

/** Fields that belong to a kind, with what to write where it cannot be without. */
const kBelongs: readonly (readonly [keyof Belonging, Belonging["kind"], string?])[] = [
  ["delay", "delay", "say for how long: delay 10ms"],
  ["code", "nak", `say why: code ${Object.keys(kNakCodes).join(", ")}`],
  ["status", "error"],
  ["rate", "slow", "say how fast: rate 1Gbps"],
  ["size", "trim"],
  ["dscp", "trim"],
  ["priorities", "pause"],
  ["down", "down"],
  ["up", "down"],
];

/** Fields that choose frames. */
const kChoice = ["opcode", "qp", "source_port", "from", "to", "share", "every", "count"] as const;
/** Kinds that are not of what leaves. */
const kOnlyIn: Partial<Record<Belonging["kind"], string>> = {
  error: "queue pairs fail by what comes in",
  slow: "hosts take what comes in",
  pause: "make it at the other end of the link",
  down: "the whole link is",
};
/** Kinds that are not about frames that come in. */
const kWhole: Partial<Record<Belonging["kind"], string>> = {
  down: "the whole link is",
  pause: "it is not about frames",
  slow: "its host is, with all that comes",
};

/** Fields that do not go together. */
function misfits(fault: Belonging): Misfit[] {
  const { kind, down, up } = fault;
  const found: Misfit[] = [];
  for (const [field, owner, hint] of kBelongs) {
    const given = fault[field] !== undefined;
    if (kind === owner && !given && hint !== undefined) found.push({ field, message: "is missing", hint });
    if (kind !== owner && given)
      found.push({ field, message: `not with kind ${kind}`, hint: `it is of kind ${owner}` });
  }
  if (kind === "down" && (down === undefined) !== (up === undefined)) {
    const hint = "a link that flaps has both: down 100ms, up 900ms";
    found.push({ field: down === undefined ? "down" : "up", message: "is missing", hint });
  }
  if (fault.direction === "out" && kOnlyIn[kind] !== undefined) {
    found.push({ field: "direction", message: `not out with kind ${kind}`, hint: kOnlyIn[kind] });
  }
  const whole = kWhole[kind];
  if (whole === undefined) return found;
  for (const field of kChoice) {
    if (fault[field] !== undefined) found.push({ field, message: `not with kind ${kind}`, hint: whole });
  }
  return found;
}
