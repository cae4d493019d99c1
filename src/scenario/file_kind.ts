/** Kinds of our files: a file shows its kind only by its fields. */
import { type Problem, ScenarioError } from "../base/error.js";
import { readScenarioFile } from "../base/yaml.js";

export type FileKind = "scenario" | "sweep" | "switch" | "nic";

/** Top-level fields that only files of one kind have, and the commands that take these files. */
const kKinds: Readonly<Record<FileKind, { fields: readonly string[]; name: string; verb: string }>> = {
  scenario: { fields: ["topology", "traffic"], name: "a scenario", verb: "weir lab run or weir sim run" },
  sweep: { fields: ["scenario"], name: "a sweep", verb: "weir sweep plan" },
  switch: { fields: ["ports", "static_fdb"], name: "a switch.yaml", verb: "weir switch -c" },
  nic: { fields: ["interface", "peers", "queue_pairs"], name: "a nic.yaml", verb: "weir nic -c" },
};

/** Kinds whose fields the data has. */
function markedKinds(data: unknown): FileKind[] {
  if (typeof data !== "object" || data === null) return [];
  const marked = (Object.keys(kKinds) as FileKind[]).filter((kind) =>
    kKinds[kind].fields.some((field) => field in data),
  );
  // A NIC may have `ports`, too: those have addresses.
  const { ports } = data as { ports?: unknown };
  const ofNic = Array.isArray(ports) && ports.some((port) => Object.hasOwn(Object(port), "address"));
  return ofNic ? ["nic", ...marked.filter((kind) => kind !== "switch" && kind !== "nic")] : marked;
}

/** Kind of a file by its top-level fields; a scenario if they do not tell. */
export function fileKind(data: unknown): FileKind {
  return markedKinds(data)[0] ?? "scenario";
}

/** Kind of a file, or of its `text`; one that cannot be read is left to the scenario loader, which says why. */
export function kindOfFile(file: string, text?: string): FileKind {
  try {
    return fileKind(readScenarioFile(file, [], "scenario", text).data);
  } catch {
    return "scenario";
  }
}

/** Error for a file that is no good as `kind`: it lists the problems, or says that the file is one of another kind. */
export function rejection(kind: FileKind, source: string, data: unknown, problems: readonly Problem[]): ScenarioError {
  const [found, ...others] = markedKinds(data);
  if (found === undefined || [found, ...others].includes(kind)) return new ScenarioError(source, problems, kind);
  const { name, verb } = kKinds[found];
  return new ScenarioError(source, [{ path: [], message: `is ${name}`, hint: `it is for ${verb}` }], kind);
}
