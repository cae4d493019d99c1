/** config_db.json of SONiC on the command line: its options, and what was taken of it. */
import type { Command } from "commander";
import { Option } from "commander";
import { harmless } from "../report/terminal.js";
import { readConfigDb } from "../sonic/config_db.js";
import { type Converted, convertConfigDb } from "../sonic/convert.js";
import { type Note, placeOf } from "../sonic/notes.js";
import { readPortMap } from "../sonic/port_map.js";
import { asUsage, type CliContext, collect, UsageError } from "./context.js";

export interface SonicOptions {
  sonic?: string;
  map?: string[];
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
    );
}

/** Names of SONiC -> interfaces; undefined: not said. */
export function portMap({ map, sonic }: SonicOptions): ReadonlyMap<string, string> | undefined {
  if (map !== undefined && sonic === undefined) {
    throw new UsageError("--map: not without --sonic", { hint: "name interfaces in the `ports` of the file" });
  }
  return map && asUsage(() => readPortMap(map));
}

export function convert(file: string, options: Parameters<typeof convertConfigDb>[2]): Converted {
  return asUsage(() => convertConfigDb(readConfigDb(file), file, options));
}

/** What is wrong, what differs from SONiC, and what is ignored: the same reason once. */
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

/** Fields of the same keys after one another. */
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

/** Said of a configuration before it is used. */
export function tellNotes({ stderr }: Pick<CliContext, "stderr">, converted: Converted): void {
  stderr.write(notesText(converted));
}
