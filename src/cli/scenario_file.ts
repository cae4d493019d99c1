/** The scenario that a verb is given: apart from `context.ts`, since verbs without one should not wait for its schema to load. */
import { readConfigText } from "../base/yaml.js";
import { type LoadedScenario, loadScenario } from "../scenario/scenario.js";
import { asUsage, type CliContext, warn } from "./context.js";

/** Loads a scenario, and gives the text of its file, too; the user has to fix whatever is wrong with it. Its warnings go to stderr. */
export function load(
  context: CliContext,
  file: string,
  set: readonly string[],
  text = readScenario(file),
): LoadedScenario & { text: string } {
  const loaded = asUsage(() => loadScenario(file, { set, text }));
  for (const warning of loaded.warnings) warn(context, warning);
  return { ...loaded, text };
}

/** Reads the text of a file that may be a pipe; a caller who needs it later has to keep it. */
export function readScenario(file: string): string {
  return asUsage(() => readConfigText(file, "scenario"));
}
