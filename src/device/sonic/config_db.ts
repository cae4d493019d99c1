/** config_db.json as tables of entries, which note the fields that somebody has asked for. */
import { WeirError } from "../../base/error.js";
import { showValue } from "../../base/fields.js";
import { readConfigText } from "../../base/yaml.js";
import type { Notes, Place } from "./notes.js";

/** Largest file, bytes; those of switches with 512 ports and their access lists have about one million. */
const kLargest = 16 << 20;

/** Tables of which a switch is made: errors in others hinder nobody. */
const kTaken = new Set([
  ...["PORT", "PORT_QOS_MAP", "DSCP_TO_TC_MAP", "DOT1P_TO_TC_MAP", "TC_TO_QUEUE_MAP", "TC_TO_PRIORITY_GROUP_MAP"],
  ...["MAP_PFC_PRIORITY_TO_QUEUE", "WRED_PROFILE", "SCHEDULER", "QUEUE", "PFC_WD", "CABLE_LENGTH"],
  ...["VLAN", "VLAN_MEMBER", "VLAN_INTERFACE", "INTERFACE", "PORTCHANNEL_INTERFACE", "VLAN_SUB_INTERFACE"],
  ...["BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "BUFFER_QUEUE", "DEFAULT_LOSSLESS_BUFFER_PARAMETER"],
]);

const kNoTable = "is no table: SONiC reads none of it";

/** One key of a table. */
export class Entry {
  private readonly asked = new Set<string>();
  private taken = false;

  constructor(
    readonly table: string,
    readonly key: string,
    private readonly fields: ReadonlyMap<string, string>,
  ) {}

  get(field: string): string | undefined {
    this.asked.add(field);
    return this.fields.get(field);
  }

  place(field?: string): Place {
    return { table: this.table, key: this.key, field };
  }

  /** Marks the entry as used because of its key alone. */
  take(): void {
    this.taken = true;
  }

  get isTaken(): boolean {
    return this.taken;
  }

  /** Fields that nobody has asked for. */
  unread(): string[] {
    return [...this.fields.keys()].filter((field) => !this.asked.has(field));
  }

  /** Fields that somebody has asked for. */
  read(): string[] {
    return [...this.fields.keys()].filter((field) => this.asked.has(field));
  }
}

export class ConfigDb {
  constructor(private readonly tables: ReadonlyMap<string, ReadonlyMap<string, Entry>>) {}

  names(): string[] {
    return [...this.tables.keys()];
  }

  entries(table: string): Entry[] {
    return [...(this.tables.get(table)?.values() ?? [])];
  }

  entry(table: string, key: string): Entry | undefined {
    return this.tables.get(table)?.get(key);
  }
}

/** @throws WeirError if the file cannot be read. */
export const readConfigDb = (file: string) => readConfigText(file, "config_db", kLargest);

/**
 * Parses the text. Values that are no fields at all (a list of tables, a number as a table) are noted as wrong, and the rest is read.
 * @throws WeirError if the text is no JSON, or no object of tables.
 */
export function parseConfigDb(text: string, source: string, notes: Notes): ConfigDb {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw new WeirError(`${source}: is no JSON: ${(error as Error).message}`, {
      field: "file",
      hint: "give a config_db.json, as `sonic-cfggen -d --print-data` or `config save` write it",
    });
  }
  if (!isObject(data)) {
    const what = Array.isArray(data) ? "is a list, as for swssconfig" : `is ${showValue(data)}`;
    throw new WeirError(`${source}: ${what}, not an object of tables`, {
      field: "file",
      hint: "give a config_db.json",
    });
  }
  const tables = new Map<string, Map<string, Entry>>();
  const take = (table: string, key: string, value: unknown) => {
    const entries = tables.get(table) ?? new Map<string, Entry>();
    tables.set(table, entries);
    entries.set(key, new Entry(table, key, fieldsOf(table, key, value, notes)));
  };
  for (const [name, value] of Object.entries(data)) {
    // A dump of the database has `TABLE|key` at the top.
    const bar = name.indexOf("|");
    if (bar > 0) {
      take(name.slice(0, bar), name.slice(bar + 1), value);
    } else if (isObject(value)) {
      if (!tables.has(name)) tables.set(name, new Map());
      for (const [key, fields] of Object.entries(value)) take(name, key, fields);
    } else if (kTaken.has(name)) {
      notes.add("wrong", { table: name }, `is ${showValue(value)}, not a table`);
    } else {
      notes.add("ignored", { table: name }, kNoTable);
    }
  }
  return new ConfigDb(tables);
}

function fieldsOf(table: string, key: string, value: unknown, notes: Notes): Map<string, string> {
  const fields = new Map<string, string>();
  // Such an entry has a key without fields.
  if (value === null || (Array.isArray(value) && value.length === 0)) return fields;
  if (!isObject(value)) {
    notes.add("wrong", { table, key }, `is ${showValue(value)}, not an object of fields`, kTaken.has(table));
    return fields;
  }
  for (const [field, content] of Object.entries(value)) {
    // A null counts as a field that is not there.
    if (content === null) continue;
    const text = textOf(content);
    if (text === undefined) {
      notes.add("wrong", { table, key, field }, `is ${showValue(content)}, not a text`, kTaken.has(table));
    } else if (field !== "NULL") fields.set(field, text);
  }
  return fields;
}

/** Text of a field. The database has texts and lists of them; people write numbers, too. */
function textOf(content: unknown): string | undefined {
  if (Array.isArray(content)) {
    const parts = content.map(textOf);
    return parts.includes(undefined) ? undefined : parts.join(",");
  }
  return ["string", "number", "boolean"].includes(typeof content) ? String(content) : undefined;
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);
