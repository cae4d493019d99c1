// A parameter of a congestion control as files have it.
import { z } from "zod";
import { capital, converted, field, showValue } from "../base/fields.js";
import type { Parameter } from "./parameter.js";

export function parameterSchema(name: string, { description, unit, range, parse }: Parameter) {
  const number = ["us", "ms", "Mb/s", "bytes", "%"].includes(unit) ? `; a plain number is in ${unit}` : "";
  const written = z.union([z.string(), z.number(), z.boolean()], {
    error: (issue) => `${showValue(issue.input)} is not a value for ${name}`,
  });
  const schema = converted(written, parse, () => `must be ${range}${number}`);
  return field(schema, `${description} ${capital(range)}${number}.`);
}
