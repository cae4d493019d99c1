// The `library` section of `congestion`: which shared library, and what it runs on.
import { z } from "zod";
import { field, section, time } from "../base/fields.js";
import type { LibraryChoice } from "./algorithm.js";
import { kNicParameters } from "./described.js";

/** N of the DCQCN paper, section 3.3, in ns. */
const kPaperInterval = 50_000;
const { description, bounds } = kNicParameters.min_time_between_cnps;

export const librarySchema = section({
  file: field(
    z.string().min(1),
    "Shared library (`cc -shared`) with the function `weir_cc_algorithm`; relative to this file.",
  ),
  parameters: field(z.record(z.string(), z.number()), "Values for parameters of the library, by its names for them."),
  min_time_between_cnps: time(`${description} Default: 50us.`, { max: bounds.max }),
});

export function resolveLibrary(
  input: z.output<typeof librarySchema>,
  located: (file: string) => string,
): LibraryChoice {
  const { file = "", parameters = {}, min_time_between_cnps = kPaperInterval } = input;
  return {
    file: located(file),
    names: Object.keys(parameters),
    values: Object.values(parameters),
    min_time_between_cnps,
  };
}
