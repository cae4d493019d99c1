import { join } from "node:path";

/** Folder of a run that names none: weir-results/<scenario>-<UTC time>. */
export function runFolder(scenario: string, date: Date): string {
  return join("weir-results", `${fileName(scenario)}-${timestamp(date)}`);
}

/** A scenario's name as part of a path: nothing in it can leave the folder. */
function fileName(name: string): string {
  return name.replace(/[^A-Za-z0-9._-]+/g, "_").replace(/^\.+/, "_");
}

/** Returns UTC time that sorts by time: 20260131T235959Z. */
function timestamp(date: Date): string {
  return date.toISOString().replace(/[-:]|\.\d+/g, "");
}
