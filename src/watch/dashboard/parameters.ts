/** Parameters that can be changed while traffic flows: ECN, PFC and buffer of switches, DCQCN or QCN of NICs. */
import type { z } from "zod";
import { WeirError } from "../../base/error.js";
import { capital } from "../../base/fields.js";
import { formatSize } from "../../base/units.js";
import { algorithmOf } from "../../congestion/algorithms.js";
import type { Parameter as Described, ParameterInput } from "../../congestion/parameter.js";
import { switchQcnSchema } from "../../congestion/qcn_points.js";
import { spellingsOf } from "../../congestion/spellings.js";
import { bufferSchema } from "../../scenario/features/buffer.js";
import { ecnSchema } from "../../scenario/features/ecn.js";
import { pfcSchema } from "../../scenario/features/pfc.js";
import type { BufferConfig, Congestion } from "../../scenario/types.js";
import type { Parameter } from "./protocol.js";

/** Settings that the parameters are read from. */
export interface Settings {
  /** The file as written, with what `--set` and the page have put over it. */
  data: unknown;
  /** Path of the sections of a switch in it: ["switch"] of scenarios, [] of daemon files; undefined: there is no switch. */
  switchAt: readonly string[] | undefined;
  /** Values that are not written and have no default of their own. */
  buffer: Pick<BufferConfig, "xon_offset" | "threshold"> | undefined;
  /** Congestion control of NICs; undefined: there are none. */
  congestion: Congestion | undefined;
  /** Whether switches have congestion points. */
  qcn: boolean;
}

type Kind = Parameter["kind"];
type Field = readonly [name: string, kind: Kind];

const kEcn: readonly Field[] = [
  ["enabled", "flag"],
  ["kmin", "size"],
  ["kmax", "size"],
  ["pmax", "fraction"],
];
const kPfc: readonly Field[] = [["enabled", "flag"]];
const kBuffer: readonly Field[] = [
  ["beta", "number"],
  ["headroom", "size"],
  ["xon_offset", "size"],
  ["mode", "choice"],
  ["threshold", "size"],
  ["lossy_alpha", "number"],
];
const kQcn: readonly Field[] = [
  ["cpQSp", "size"],
  ["cpWeight", "number"],
  ["cpSampleBase", "size"],
];

/**
 * A page's assignments are of the sections whose parameters it has shown, and of nothing else: other fields of the file name libraries to
 * load, files to write and addresses to listen at, and are its owner's. A switch of several may be named in front.
 * @throws WeirError that names the field
 */
export function admitAssignments(set: readonly string[], shown: readonly Parameter[]): void {
  const paths = new Set(shown.map(({ path }) => path));
  // Congestion control is not open as a whole section: it names algorithm and library.
  const sections = new Set([...paths].map(sectionOf).filter((section) => section !== "congestion"));
  for (const assignment of set) {
    const [path, value] = assignment.split("=", 2);
    // A text that is no assignment is refused as such elsewhere.
    if (path === undefined || value === undefined) continue;
    const ofAll = path.replace(/^topology\.switches\.[^.]+\./, "switch.");
    if (paths.has(path) || sections.has(sectionOf(path)) || sections.has(sectionOf(ofAll))) continue;
    throw new WeirError(`${path} cannot change here`, {
      field: path,
      hint: sections.size === 0 ? "nothing can" : `what can: ${[...sections].join(", ")}; the rest in the file`,
    });
  }
}

const sectionOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf(".")));

export function listParameters(settings: Settings): Parameter[] {
  const { switchAt, congestion, qcn, buffer, data } = settings;
  // A NIC's file has `pfc` too.
  const sections = switchAt ?? [];
  const found: Parameter[] = [];
  const section = (group: Parameter["group"], name: string, schema: z.ZodObject, fields: readonly Field[]) => {
    for (const [field, kind] of fields) {
      found.push(ofSection(data, group, [...sections, name, field], schema.shape[field] as z.ZodType, kind, buffer));
    }
  };
  if (switchAt !== undefined) section("ECN", "ecn", ecnSchema, kEcn);
  section("PFC", "pfc", pfcSchema, kPfc);
  if (switchAt !== undefined) section("PFC", "buffer", bufferSchema, kBuffer);
  if (qcn) section("QCN", "qcn", switchQcnSchema, kQcn);
  return congestion === undefined ? found : [...found, ...ofCongestion(data, congestion)];
}

function ofSection(
  data: unknown,
  group: Parameter["group"],
  path: readonly string[],
  schema: z.ZodType,
  kind: Kind,
  buffer: Settings["buffer"],
): Parameter {
  const { description = "", default: fallback } = schema.meta() ?? {};
  const name = path.at(-1) as "xon_offset";
  const value = valueAt(data, path) ?? fallback ?? formatSize(buffer?.[name] ?? 0).replace(" ", "");
  const choices = optionsOf(schema);
  return {
    path: path.join("."),
    group,
    value: String(value),
    kind,
    ...(choices && { choices }),
    description,
  };
}

function optionsOf(schema: z.ZodType): string[] | undefined {
  const { options } = (schema as z.ZodOptional<z.ZodEnum>).unwrap() as { options?: unknown };
  const named = Array.isArray(options) && options.every((option): option is string => typeof option === "string");
  return named ? options : undefined;
}

function ofCongestion(data: unknown, { algorithm, profile }: Congestion): Parameter[] {
  const { feedback, title: group, parameters, profiles, defaults } = algorithmOf(algorithm);
  if (feedback === "none") return [];
  const standard = profiles?.[profile ?? ""]?.parameters ?? defaults;
  const own = Object.entries(parameters).map(([name, parameter]) =>
    ofAlgorithm(data, group, parameter, standard?.[name]?.[0] ?? "", spellingsOf(name)),
  );
  if (profile === undefined) return own;
  const description = "Named set of parameters, for those that are not given one by one.";
  const choices = Object.keys(profiles ?? {});
  return [{ path: "congestion.profile", group, value: profile, kind: "choice", choices, description }, ...own];
}

/** @param spellings The spelling that is written stays: both at a time would be a mistake. */
function ofAlgorithm(
  data: unknown,
  group: string,
  { kind, description, unit, range }: Described,
  fallback: ParameterInput,
  spellings: readonly string[],
): Parameter {
  const at = (name: string) => ["congestion", "parameters", name];
  const name = spellings.find((spelling) => valueAt(data, at(spelling)) !== undefined) ?? (spellings[0] as string);
  const value = valueAt(data, at(name)) ?? fallback;
  return {
    path: at(name).join("."),
    group,
    value: typeof value === "number" ? `${value}${kSuffixes[unit] ?? ""}` : String(value),
    kind,
    description: `${description} ${capital(range)}.`,
  };
}

/** Units of plain numbers, as users write them. */
const kSuffixes: Readonly<Record<string, string>> = { us: "us", ms: "ms", "Mb/s": "Mbps", bytes: "B", "%": "%" };

function valueAt(data: unknown, path: readonly string[]): unknown {
  let at = data;
  for (const key of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key];
  }
  return at ?? undefined;
}
