// Fields for addresses in daemons' files.
import { isIP } from "node:net";
import { z } from "zod";
import { showValue } from "../../base/fields.js";
import { canonicalAddress } from "../../wire/address.js";

const kMac = /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i;

export const macSchema = z
  .string()
  .regex(kMac, { error: (issue) => `${showValue(issue.input)} is not a MAC address such as 02:00:00:00:00:01` })
  .transform((text) => Number.parseInt(text.replaceAll(":", ""), 16));
export const addressSchema = z
  .string({ error: (issue) => `${showValue(issue.input)} is not an IP address such as 10.0.0.1 or fd00::1` })
  .refine((text) => isIP(text) !== 0 && !text.includes("%"), {
    error: (issue) => `${showValue(issue.input)} is not an IP address such as 10.0.0.1 or fd00::1`,
  })
  .transform(canonicalAddress);
export const namespacePath = z
  .string()
  .regex(/^\//, { error: "give the path of a network namespace, such as /run/netns/blue" });
