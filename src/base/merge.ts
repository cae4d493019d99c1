// Layers of settings, one over another.
const isSection = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Later layers win, field by field. Sections are merged; lists, DSCP maps and weights are replaced as a whole. */
export function merge<T extends object>(...layers: (T | null | undefined)[]): T {
  const result: Record<string, unknown> = {};
  for (const layer of layers) {
    for (const [key, value] of Object.entries(layer ?? {})) {
      if (value === undefined) continue;
      const before = result[key];
      const whole = key === "dscp_map" || key === "weights" || !isSection(before) || !isSection(value);
      result[key] = whole ? value : merge(before, value);
    }
  }
  return result as T;
}

/** `[a, b]` and `{a: ..., b: null}` alike as name -> overrides; a name given twice in a list appears twice. */
export function entries<T extends object>(
  members: string[] | Record<string, T | null> | undefined,
): [string, T | null][] {
  if (members === undefined) return [];
  return Array.isArray(members) ? members.map((name) => [name, null]) : Object.entries(members);
}
