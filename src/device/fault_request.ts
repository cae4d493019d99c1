/** A fault as a running device is asked for it. */
import { z } from "zod";
import { WeirError } from "../base/error.js";
import { field, problemsOf, section, time } from "../base/fields.js";
import { faultShape, kMostTime, refuseMisfits } from "../scenario/fault_schema.js";
import { addressSchema } from "./file/schema_parts.js";

/** A fault as it is asked for: by command, and in a device's file. */
export const faultSchema = section({
  port: field(z.string().min(1).max(255), "Port of the device. Default: its only one."),
  after: time("Time until it begins. Default: it begins at once.", { max: kMostTime }),
  ...faultShape(addressSchema, "IP address"),
}).superRefine(refuseMisfits);
export type FaultRequest = z.output<typeof faultSchema>;

/** The field by which a fault is of NICs alone. */
export function ofNicsAlone({ kind, direction }: FaultRequest) {
  if (kind === "error" || kind === "slow") {
    return { field: "kind", message: `${kind} is of NICs alone`, hint: "make it at the NIC" };
  }
  if (direction !== "out") return undefined;
  const hint = "choose the port where they come in, with `to`";
  return { field: "direction", message: "out is of NICs alone", hint };
}

const killSchema = section({ after: faultSchema.shape.after });

/** Both are given a request of the control socket. @throws WeirError for one that cannot be. */
export const parseFault = (asked: object): FaultRequest => parse(faultSchema, asked);
export const parseKill = (asked: object): z.output<typeof killSchema> => parse(killSchema, asked);

function parse<T extends z.ZodType>(schema: T, asked: object): z.output<T> {
  const { request: _, device: _d, ...written } = asked as { request?: unknown; device?: unknown };
  const parsed = schema.safeParse(written);
  if (!parsed.success) {
    const [problem] = problemsOf(parsed.error, written);
    throw new WeirError(`fault: ${problem?.path.join(".")}: ${problem?.message}`, { hint: problem?.hint });
  }
  return parsed.data;
}
