/** A finished run as it is kept. */
import type { Scenario } from "../config/types.js";
import type { Result, Series } from "./result.js";

/** What was asked for: the file as written, the overrides, and what they came to. Saved as scenario.json. */
export interface RunSource {
  text: string;
  set: readonly string[];
  scenario: Scenario;
}

/** A run as its folder has it; `source` where there is a scenario.json. */
export interface SavedRun {
  result: Result;
  series: Series;
  source: RunSource | undefined;
}
