// The `congestion` section of scenarios and daemon files: an algorithm, its profile and variant, and parameters one by one.
import { z } from "zod";
import { choice, field, filled, section } from "../base/fields.js";
import type { Findings } from "../base/findings.js";
import type { LibraryChoice } from "./algorithm.js";
import { type AlgorithmName, algorithmOf, type Congestion, kAlgorithmNames, kControls } from "./algorithms.js";
import { librarySchema, resolveLibrary } from "./library_section.js";
import type { Parsed } from "./parameter.js";
import { parameterSchema } from "./parameter_schema.js";
import type { QcnParameters } from "./qcn.js";
import type { WrittenGroups } from "./qcn_points.js";
import { kSpellings, spellingsOf } from "./spellings.js";

const controls = kControls.map(algorithmOf);

const parameterFields = [...kSpellings].map(([spelling, { parameter }]) => [
  spelling,
  parameterSchema(spelling, parameter),
]);

/** Parameters of all algorithms by their names; of two spellings the first stands for both. */
const parametersSchema = section(Object.fromEntries(parameterFields), {
  field: "algorithm",
  names: Object.fromEntries(
    kAlgorithmNames.map((name) => {
      const { parameters, symbols = {} } = algorithmOf(name);
      return [name, [...Object.keys(parameters), ...Object.keys(symbols)]];
    }),
  ),
  fallback: kAlgorithmNames[0] as AlgorithmName,
}).transform((written, context) => {
  const result: Record<string, Parsed> = {};
  for (const [spelling, value] of Object.entries(written as Record<string, Parsed | undefined>)) {
    if (value === undefined) continue;
    const name = kSpellings.get(spelling)?.name ?? spelling;
    if (name in result) {
      const params = { hint: `${spellingsOf(name).join(" and ")} are the same parameter` };
      context.addIssue({ code: "custom", message: "is given twice", path: [spelling], params, input: value });
    }
    result[name] = value;
  }
  return result;
});

const kDefaultProfiles = controls
  .map(({ title, profiles }, i) => {
    if (profiles === undefined) return `; ${title} has none`;
    return `${i === 0 ? "" : `; of ${title}`} \`${Object.keys(profiles)[0]}\``;
  })
  .join("");

export const congestionSchema = section({
  algorithm: choice(
    `Congestion control of the hosts; ${kAlgorithmNames
      .flatMap((name) => (algorithmOf(name).needs === undefined ? [] : `\`${name}\` ${algorithmOf(name).needs}`))
      .join(", ")}.`,
    kAlgorithmNames as [AlgorithmName, ...AlgorithmName[]],
    kAlgorithmNames[0] as AlgorithmName,
  ),
  profile: field(
    z.enum(controls.flatMap(({ profiles = {} }) => Object.keys(profiles))),
    `Named set of parameters; the sources disagree, see parameters.md. Default:${kDefaultProfiles}.`,
  ),
  variant: field(
    z.enum(controls.flatMap(({ variants }) => variants?.names ?? [])),
    controls
      .flatMap(({ title, variants }) =>
        variants === undefined ? [] : `Of ${title}: ${variants.description}. Default: \`${variants.names[0]}\`.`,
      )
      .join(" "),
  ),
  parameters: field(
    parametersSchema,
    `Overrides of the profile: ${controls.map(({ title, names }) => `of ${title} by ${names}`).join(", ")}.`,
  ),
  library: field(librarySchema, "Of `algorithm: library`: a congestion control of your own."),
});

type CongestionInput = z.output<typeof congestionSchema>;

/** Percentages are of `lineRate`, bit/s; `located` finds a file that is named. A parameter of another algorithm is a problem. */
export function resolveCongestion(
  input: CongestionInput,
  lineRate: number,
  located: (file: string) => string,
  found: Findings,
): Congestion {
  const { algorithm, parameters = {} } = filled(congestionSchema, input);
  if (kControls.includes(algorithm)) refuseOthers(input, algorithm, found);
  const library = algorithm === "library" ? libraryOf(input, located, found) : undefined;
  return resolved(input, parameters, lineRate, library);
}

/** Parameters of reaction points under QCN, by CNPV: those of `input`, and what is written of each group over them. */
export function resolveGroups(
  input: CongestionInput,
  groups: WrittenGroups,
  lineRate: number,
): ReadonlyMap<number, QcnParameters> {
  const { algorithm, parameters = {} } = filled(congestionSchema, input);
  if (algorithm !== "qcn") return new Map();
  return new Map(
    Object.entries(groups).map(([priority, own = {}]) => {
      const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
      const congestion = resolved(input, { ...parameters, ...(given as Record<string, Parsed>) }, lineRate, undefined);
      return [Number(priority), congestion.parameters as QcnParameters];
    }),
  );
}

/** @param written Parameters that are given one by one. */
function resolved(
  input: CongestionInput,
  written: Readonly<Record<string, Parsed>>,
  lineRate: number,
  library: LibraryChoice | undefined,
): Congestion {
  const { algorithm } = filled(congestionSchema, input);
  const descriptor = algorithmOf(algorithm);
  const names = Object.keys(descriptor.profiles ?? {});
  const profile = names.find((name) => name === input.profile) ?? names[0];
  const variant = descriptor.variants && (input.variant ?? descriptor.variants.names[0]);
  const sourced = descriptor.profiles?.[profile ?? ""]?.parameters ?? descriptor.defaults ?? {};
  const standard: Record<string, number | boolean> = {};
  const values: Record<string, number | boolean> = {};
  for (const [name, { parse }] of Object.entries(descriptor.parameters)) {
    standard[name] = plain(parse(sourced[name]?.[0] ?? Number.NaN), lineRate);
    values[name] = name in written ? plain(written[name], lineRate) : (standard[name] ?? Number.NaN);
  }
  const overridden = new Set(Object.keys(written));
  const choice = { profile: profile ?? "", variant: variant ?? "", lineRate, standard, overridden, library };
  return { algorithm, profile, variant, parameters: descriptor.resolve(values, choice) } as Congestion;
}

function libraryOf(
  { library = {} }: CongestionInput,
  located: (file: string) => string,
  found: Findings,
): LibraryChoice {
  const hint = "library: { file: ./mine.so }";
  if (library.file === undefined) found.problem(["congestion", "library", "file"], "is missing", hint);
  return resolveLibrary(library, located);
}

/** Parts of the line rate (bit/s) as whole bit/s. */
function plain(value: Parsed | undefined, lineRate: number): number | boolean {
  return typeof value === "object" ? Math.round(value.ofLine * lineRate) : (value ?? Number.NaN);
}

function refuseOthers(input: CongestionInput, algorithm: AlgorithmName, found: Findings): void {
  const { title, profiles } = algorithmOf(algorithm);
  const { profile, variant, parameters = {} } = input;
  if (Object.keys(input.library ?? {}).length > 0 && algorithm !== "library") {
    found.problem(["congestion", "library"], `is not of ${title}`, "leave it out, or use algorithm: library");
  }
  for (const other of kControls.filter((name) => name !== algorithm)) {
    const { title: others, ...theirs } = algorithmOf(other);
    if (profile !== undefined && theirs.profiles?.[profile] !== undefined) {
      const use = profiles ? `use ${Object.keys(profiles).join(", ")}` : `leave it out: ${title} has no profiles`;
      found.problem(
        ["congestion", "profile"],
        `${profile} is a profile of ${others}`,
        `${use}, or algorithm: ${other}`,
      );
    }
    for (const name of Object.keys(parameters).filter((name) => kSpellings.get(name)?.algorithm === other)) {
      const path = ["congestion", "parameters", name];
      found.problem(path, `is a parameter of ${others}`, `use those of ${title}, or algorithm: ${other}`);
    }
    if (variant !== undefined && theirs.variants?.names.includes(variant)) {
      const hint = `leave it out, or use algorithm: ${other}`;
      found.problem(["congestion", "variant"], `${variant} is a variant of ${others}`, hint);
    }
  }
}

/** `lineRate` of the slowest host, bit/s. */
export function checkCongestion({ algorithm, parameters }: Congestion, lineRate: number, found: Findings): void {
  algorithmOf(algorithm).check?.(parameters, lineRate, found);
}
