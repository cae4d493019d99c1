/** Notes on a config_db.json: settings that a switch takes otherwise than SONiC, does not take, or cannot take because they are wrong. */

/**
 * `wrong`: SONiC could not take it either: a reference to nothing, out of range. `differs`: taken, but not quite as SONiC does.
 * `ignored`: not taken, for a reason.
 */
export type NoteKind = "wrong" | "differs" | "ignored";

export interface Note {
  kind: NoteKind;
  table: string;
  /** Keys that the note is about; none: the table as a whole. */
  keys: string[];
  field?: string;
  message: string;
  /** Whether the switch that was asked for needs the entry, if that is wrong. */
  needed: boolean;
}

/** Place as SONiC writes it: `WRED_PROFILE|AZURE|ecn`, or with more keys `PORT|Ethernet0 and 31 more|lanes`. */
export function placeOf({ table, keys: [first, ...more], field }: Pick<Note, "table" | "keys" | "field">): string {
  const key = first !== undefined && more.length > 0 ? `${first} and ${more.length} more` : first;
  return [table, key, field].filter((part) => part !== undefined).join("|");
}

/** Place where something was written. */
export interface Place {
  table: string;
  key?: string | undefined;
  field?: string | undefined;
}

/** Collects notes; the same note about several keys is one. */
export class Notes {
  private readonly found = new Map<string, Note>();

  add(kind: NoteKind, { table, key, field }: Place, message: string, needed = kind === "wrong"): void {
    const id = JSON.stringify([kind, table, field, message, needed]);
    const known = this.found.get(id);
    if (known === undefined) {
      const keys = key === undefined ? [] : [key];
      this.found.set(id, { kind, table, keys, ...(field !== undefined && { field }), message, needed });
    } else if (key !== undefined && !known.keys.includes(key)) {
      known.keys.push(key);
    }
  }

  /** All notes: errors first, then differences. */
  all(): Note[] {
    const order: readonly NoteKind[] = ["wrong", "differs", "ignored"];
    return [...this.found.values()].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  }
}
