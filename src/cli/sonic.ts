/** config_db.json of SONiC on the command line: its options, and notes on what was taken of it. */
import type { Command } from "commander";
import { Option } from "commander";
import { ScenarioError } from "../base/error.js";
import { parseSize } from "../base/units.js";
import { parseOverride, readScenarioText } from "../base/yaml.js";
import { loadSwitchDaemon } from "../device/file/load.js";
import { readConfigDb } from "../device/sonic/config_db.js";
import { type Converted, type ConvertOptions, convertConfigDb, switchYaml } from "../device/sonic/convert.js";
import { type Note, placeOf } from "../device/sonic/notes.js";
import { readPortMap } from "../device/sonic/port_map.js";
import { readSpeeds } from "../device/sonic/speeds.js";
import { harmless } from "../result/report/terminal.js";
import { switchSchema } from "../scenario/device_schema.js";
import { asUsage, type CliContext, collect, UsageError } from "./context.js";

export interface SonicOptions {
  sonic?: string;
  map?: string[];
  speed?: string;
  set?: string[];
}

export function withSonic(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--sonic <config_db.json>",
        "configuration of a SONiC switch; docs/guides/sonic.md says what of it counts",
      ),
    )
    .option(
      "--map <port=interface>",
      "with --sonic: the interface of a port, or several between commas, or a file of them; only these are taken",
      collect,
    )
    .option(
      "--speed <rate|file>",
      "with --sonic: of ports whose `speed` the file does not say; a rate, or the platform's port_config.ini",
    );
}

/** Options with which a config_db.json is read; undefined: there is none. */
export function convertOptions(options: SonicOptions): ConvertOptions | undefined {
  const { sonic, speed, set = [] } = options;
  const map = portMap(options);
  if (sonic === undefined) {
    if (speed !== undefined) throw new UsageError("--speed: not without --sonic");
    return undefined;
  }
  const total = set.flatMap((one) => /^(?:switch\.)?buffer\.total=(.*)$/.exec(one)?.[1] ?? []).at(-1);
  return asUsage(() => ({
    map,
    ...(speed !== undefined && { speeds: readSpeeds(speed) }),
    ...(total !== undefined && { total: parseSize(total) }),
  }));
}

/**
 * Fields of the switch by their names in a switch.yaml or in a scenario: `buffer.total=16MB` and `switch.buffer.total=16MB` are
 * one. @param section The section that has them: `switch` in a scenario, none in a switch.yaml.
 */
export function switchFields(set: readonly string[], section: "switch" | undefined): string[] {
  return set.map((one) => {
    const { keys } = asUsage(() => parseOverride(one));
    const [first = "", second = ""] = keys;
    if (section === undefined) {
      return first === "switch" && second in switchSchema.shape ? one.slice("switch.".length) : one;
    }
    return first in switchSchema.shape ? `${section}.${one}` : one;
  });
}

/** Interfaces by names of SONiC; undefined: not said. */
function portMap({ map, sonic }: SonicOptions): ReadonlyMap<string, string> | undefined {
  if (map !== undefined && sonic === undefined) {
    throw new UsageError("--map: not without --sonic", { hint: "name interfaces in the `ports` of the file" });
  }
  return map && asUsage(() => readPortMap(map));
}

export function convert(file: string, options: Parameters<typeof convertConfigDb>[2]): Converted {
  return asUsage(() => convertConfigDb(readConfigDb(file), file, options));
}

/**
 * The configuration that `--print` shows: with --set, and as a switch takes it. @throws ScenarioError by fields, not by lines of
 * a file that is not there yet.
 */
export function printable(converted: Converted, set: readonly string[]): Converted {
  const { source } = converted;
  const text = switchYaml(converted);
  try {
    const { data } = readScenarioText(text, source, set, "config_db");
    loadSwitchDaemon(source, { text, set });
    return { ...converted, config: data as Converted["config"] };
  } catch (error) {
    if (!(error instanceof ScenarioError)) throw error;
    const problems = error.problems.map(({ line: _, column: _c, ...problem }) => problem);
    throw new ScenarioError(`${source} (as switch.yaml)`, problems, "config_db");
  }
}

/** Says what is wrong, what differs from SONiC, and what is ignored; a common reason is given once. */
export function notesText({ notes, tables }: Converted): string {
  const used = tables.filter(({ used: fields, taken }) => taken || fields.length > 0);
  const lines = [`used: ${used.map(({ table, keys }) => `${table} (${keys})`).join(", ") || "nothing"}`];
  for (const note of notes) {
    if (note.kind !== "ignored") lines.push(`${note.kind}: ${placeOf(note)}: ${note.message}`);
  }
  const reasons = new Map<string, Note[]>();
  for (const note of notes.filter(({ kind }) => kind === "ignored")) {
    reasons.set(note.message, [...(reasons.get(note.message) ?? []), note]);
  }
  for (const [reason, of] of reasons) lines.push(`ignored: ${places(of)}: ${reason}`);
  return harmless(`${lines.join("\n")}\n`);
}

/** Lists fields of the same keys after one another. */
function places(notes: readonly Note[]): string {
  const byKeys = new Map<string, { note: Note; fields: string[] }>();
  for (const note of notes) {
    const id = `${note.table}|${note.keys.join()}`;
    const known = byKeys.get(id) ?? { note, fields: [] };
    if (note.field !== undefined) known.fields.push(note.field);
    byKeys.set(id, known);
  }
  return [...byKeys.values()]
    .map(({ note: { table, keys }, fields }) =>
      placeOf({ table, keys, ...(fields.length > 0 && { field: fields.join(",") }) }),
    )
    .join(", ");
}

/** Prints the notes on a configuration before it is used. */
export function tellNotes({ stderr }: Pick<CliContext, "stderr">, converted: Converted): void {
  stderr.write(notesText(converted));
}
