/** Reads entries of a config_db: numbers within their range, references that lead somewhere, keys that name ports. Errors are noted. */
import { showValue } from "../../base/fields.js";
import { nearest } from "../../base/nearest.js";
import type { ConfigDb, Entry } from "./config_db.js";
import type { NoteKind, Notes, Place } from "./notes.js";

/** An entry of a table whose keys are `Ethernet0,Ethernet4|3-4`, with the ports and queues, or priority groups, of its key. */
export interface OfPorts {
  entry: Entry;
  ports: string[];
  numbers: number[];
}

export class Reader {
  /**
   * @param wanted Ports of the switch that is made; errors elsewhere do not hinder it.
   */
  constructor(
    readonly db: ConfigDb,
    readonly notes: Notes,
    readonly wanted: ReadonlySet<string>,
  ) {}

  note(kind: NoteKind, place: Place, message: string): void {
    this.notes.add(kind, place, message, kind === "wrong" && this.isNeeded(place.key));
  }

  /** A whole number; undefined if there is none. */
  integer(entry: Entry, field: string, least: number, most: number): number | undefined {
    const text = entry.get(field);
    if (text === undefined) return undefined;
    const value = /^[+-]?\d{1,20}$/.test(text.trim()) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    const problem = Number.isNaN(value) ? "is not a whole number" : "is out of range";
    this.note("wrong", entry.place(field), `${showValue(text)} ${problem}: ${least} to ${most}`);
    return undefined;
  }

  /** Numbers between commas, none twice. */
  list(entry: Entry, field: string, least: number, most: number): number[] | undefined {
    const text = entry.get(field);
    if (text === undefined) return undefined;
    const parts = text === "" ? [] : text.split(",").map((part) => part.trim());
    const values = parts.map((part) => (/^\d{1,3}$/.test(part) ? Number(part) : Number.NaN));
    if (values.every((value) => value >= least && value <= most)) return [...new Set(values)];
    this.note("wrong", entry.place(field), `${showValue(text)} is not a list of numbers from ${least} to ${most}`);
    return undefined;
  }

  choice<const Word extends string>(entry: Entry, field: string, words: readonly Word[]): Word | undefined {
    const text = entry.get(field);
    if (text === undefined) return undefined;
    const word = words.find((one) => one === text.trim());
    if (word === undefined)
      this.note("wrong", entry.place(field), `${showValue(text)} is not one of ${words.join(", ")}`);
    return word;
  }

  /** Entry that a reference names, as `AZURE` or as before 2021 `[WRED_PROFILE|AZURE]`; undefined if there is none, or it leads nowhere. */
  reference(entry: Entry, field: string, table: string): Entry | undefined {
    const text = entry.get(field);
    if (text === undefined || text === "" || text === "NULL") return undefined;
    const [, written = table, name = text] = /^\[([^|\]]*)\|(.*)\]$/.exec(text.trim()) ?? [];
    const found = written === table ? this.db.entry(table, name) : undefined;
    if (found !== undefined) return found;
    const known = this.db.entries(table).map(({ key }) => key);
    const meant = nearest(name, known);
    const remedy = meant === undefined ? "" : `; did you mean ${meant}?`;
    const message =
      written === table ? `there is no ${table}|${name}${remedy}` : `refers to ${written}, where ${table} is meant`;
    this.note("wrong", entry.place(field), message);
    return undefined;
  }

  /** Entries of a table with keys of ports and numbers 0 to 7. */
  ofPorts(table: string): OfPorts[] {
    return this.db.entries(table).flatMap((entry) => {
      const written = entry.key.split("|");
      // Virtual output queues of a chassis have the key HOST|ASIC|PORT|NUMBER.
      const parts = written.length === 4 ? written.slice(2) : written;
      if (written.length === 4 && !this.isOwn(written[0] ?? "", written[1] ?? "")) {
        this.notes.add(
          "ignored",
          entry.place(),
          "virtual output queues to ports of another card: a chassis' fabric is not here",
        );
        return [];
      }
      const [ports = "", range] = parts;
      if (parts.length !== 2 || range === undefined) {
        this.note("wrong", entry.place(), "is not PORT|NUMBER, such as Ethernet0|3-4");
        return [];
      }
      const numbers = this.range(entry, range);
      const known = this.knownPorts(entry, ports);
      return numbers.length === 0 || known.length === 0 ? [] : [{ entry, ports: known, numbers }];
    });
  }

  /** Whether host and ASIC are this card of a chassis, as far as the file says which one it is. */
  private isOwn(host: string, asic: string): boolean {
    const own = this.db.entry("DEVICE_METADATA", "localhost");
    const is = (name: string | undefined, other: string) =>
      name === undefined || name.toLowerCase() === other.toLowerCase();
    return is(own?.get("hostname"), host) && is(own?.get("asic_name"), asic);
  }

  /** Names in `Ethernet0,Ethernet4` that are those of ports. */
  knownPorts(entry: Entry, text: string): string[] {
    return text
      .split(",")
      .map((name) => name.trim())
      .filter((name) => {
        if (this.db.entry("PORT", name) !== undefined) return true;
        if (name === "CPU") {
          this.note("ignored", { table: entry.table }, "queues to the switch's own CPU: it has no port here");
        } else {
          this.notes.add("wrong", entry.place(), `there is no PORT|${name}`, false);
        }
        return false;
      });
  }

  private range(entry: Entry, text: string): number[] {
    const [, first, last = first] = /^(\d{1,2})(?:-(\d{1,2}))?$/.exec(text) ?? [];
    const [from, to] = [Number(first ?? Number.NaN), Number(last ?? Number.NaN)];
    if (from <= to && to <= 7) return Array.from({ length: to - from + 1 }, (_, i) => from + i);
    const message =
      from <= to ? "only queues and priority groups 0 to 7 are here" : `${showValue(text)} is not a range such as 3-4`;
    this.note(from <= to ? "ignored" : "wrong", entry.place(), message);
    return [];
  }

  /** Whether an entry is needed: a key that names ports is if one of them is. */
  private isNeeded(key: string | undefined): boolean {
    const parts = key?.split("|") ?? [];
    const named = (parts[parts.length === 4 ? 2 : 0] ?? "")
      .split(",")
      .filter((name) => this.db.entry("PORT", name) !== undefined);
    return named.length === 0 || named.some((name) => this.wanted.has(name));
  }
}
