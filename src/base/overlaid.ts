/** Assignments over others: each `path=value`, as in `--set`. */

/** Returns `more` after `set`; of each path only the last assignment stays. */
export function overlaid(set: readonly string[], more: readonly string[]): string[] {
  const paths = new Map<string, string>();
  for (const assignment of [...set, ...more]) {
    const path = assignment.split("=", 1)[0] ?? "";
    paths.delete(path);
    paths.set(path, assignment);
  }
  return [...paths.values()];
}
