// Parts of a descriptor that follow from the native core's description of an algorithm: its parameters, their defaults, and the fields of a
// native NIC.
import { kQuantities } from "../base/quantity.js";
import type { Choice, Sourced } from "./algorithm.js";
import {
  type DescribedParameters,
  type Parameter,
  type ParameterInput,
  parametersOf,
  type Values,
} from "./parameter.js";

/**
 * `name` is what the core calls the algorithm. `resolve` turns what users write into the core's values, by the names of its fields;
 * without it both are the same.
 */
export function ofCore<
  const Name extends string,
  All extends DescribedParameters,
  Resolved extends object = Values<All>,
>(
  name: Name,
  described: All,
  resolve: (values: Values<All>, choice: Choice<Values<All>>) => Resolved = (values) => values as unknown as Resolved,
) {
  const parameters = parametersOf(described);
  const native = (resolved: Resolved) =>
    ({ [name]: resolved, cnp_interval: 0 }) as Record<Name, Resolved> & { cnp_interval: number };
  return { parameters, resolve, native };
}

/** Values that the core begins with, as a user would write them, and their source. */
export function defaultsOf<Name extends string>(
  parameters: Readonly<Record<Name, Parameter>>,
  sources: Readonly<Record<NoInfer<Name>, string>>,
): Record<Name, Sourced> {
  const all = (Object.keys(parameters) as Name[]).map((name) => [name, [written(parameters[name]), sources[name]]]);
  return Object.fromEntries(all) as Record<Name, Sourced>;
}

/** Percentages are rounded to so many digits, as binary numbers are not quite what the decimal ones say. */
const kDigits = 12;

function written({ kind, unit, standard = Number.NaN }: Parameter): ParameterInput {
  if (kind === "number" || kind === "flag") return unit === "1/1024" ? standard * 1024 : standard;
  if (kind === "fraction") return `${Number((standard * 100).toPrecision(kDigits))}%`;
  return kQuantities[kind].format(standard).replace(" ", "");
}
