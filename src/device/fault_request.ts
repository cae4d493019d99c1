/** A fault as it is asked for, in the terms of users. */
import { z } from "zod";
import { WeirError } from "../base/error.js";
import { field, fraction, integer, problemsOf, section, time } from "../base/fields.js";
import { addressSchema } from "./file/schema_parts.js";

export const kFaultKinds = ["drop", "delay", "duplicate", "corrupt", "mark", "down"] as const;

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

const kMostTime = 86_400e9;
const opcode = z.union([z.enum(Object.keys(kOpcodes) as [string, ...string[]]), z.int().min(0).max(0xff)], {
  error: `an opcode is ${Object.keys(kOpcodes).join(", ")}, or its number`,
});

/** A fault as it is asked for. */
export const faultSchema = section({
  kind: z.enum(kFaultKinds),
  port: field(z.string().min(1).max(255), "Port of the device. Default: its only one."),
  opcode: field(z.array(opcode).min(1).max(64), "Opcodes of RoCEv2 packets that match. Default: all frames."),
  qp: integer("Queue pair that matching packets are for.", 0, 0xff_ffff),
  source_port: integer("UDP source port of matching packets.", 0, 0xffff),
  from: field(addressSchema, "IP address of the sender of matching packets."),
  to: field(addressSchema, "IP address of their receiver."),
  share: fraction("Share of those that match.", { default: 1 }),
  every: integer("One of so many that match, the last of them.", 1, 0xffff_ffff, 1),
  count: integer("Frames after which it is over.", 1, Number.MAX_SAFE_INTEGER),
  seed: integer("Seed of the share: the same frames have the same fate.", 0, Number.MAX_SAFE_INTEGER, 1),
  for: time("Time after which it is over. Default: until it is ended.", { min: 1_000, max: kMostTime }),
  delay: time("Time that a frame is held back, kind delay: others overtake it.", { min: 1_000, max: kMostTime }),
  down: time("Time that the link is down each time, kind down. Default: it stays down.", { min: 1e6, max: kMostTime }),
  up: time("Time that the link is up in between, kind down with `down`.", { min: 1e6, max: kMostTime }),
});
export type FaultRequest = z.output<typeof faultSchema>;

/** @throws WeirError for one that cannot be. */
export function parseFault(written: object): FaultRequest {
  const parsed = faultSchema.safeParse(written);
  if (!parsed.success) {
    const [problem] = problemsOf(parsed.error, written);
    throw new WeirError(`fault: ${problem?.path.join(".")}: ${problem?.message}`, { hint: problem?.hint });
  }
  checkFault(parsed.data);
  return parsed.data;
}

/** @throws WeirError for fields that do not go together. */
function checkFault({ kind, delay, down, up, ...fault }: FaultRequest): void {
  const wrong = (field: string, message: string, hint: string): never => {
    throw new WeirError(`fault: ${field}: ${message}`, { hint });
  };
  if ((kind === "delay") !== (delay !== undefined)) {
    if (delay === undefined) wrong("delay", "is missing", "say for how long: delay 10ms");
    else wrong("delay", `not with kind ${kind}`, "it is of kind delay");
  }
  if (kind !== "down") {
    const extra = down !== undefined ? "down" : "up";
    if (down !== undefined || up !== undefined) wrong(extra, `not with kind ${kind}`, "it is of kind down");
    return;
  }
  if ((down === undefined) !== (up === undefined)) {
    wrong(down === undefined ? "down" : "up", "is missing", "a link that flaps has both: down 100ms, up 900ms");
  }
  for (const name of ["opcode", "qp", "source_port", "from", "to", "share", "every", "count"] as const) {
    if (fault[name] !== undefined) wrong(name, "not with kind down", "the whole link is");
  }
}
