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

/** @throws WeirError for one that cannot be. */
export function parseFault(written: object): FaultRequest {
  const parsed = faultSchema.safeParse(written);
  if (!parsed.success) {
    const [problem] = problemsOf(parsed.error, written);
    throw new WeirError(`fault: ${problem?.path.join(".")}: ${problem?.message}`, { hint: problem?.hint });
  }
  return parsed.data;
}
