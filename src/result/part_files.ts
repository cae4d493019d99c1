/** Reads the folder of a part's run again. */
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { CsvTable } from "../base/csv.js";
import { WeirError } from "../base/error.js";
import { digestOf } from "../scenario/parts.js";
import type { Scenario } from "../scenario/types.js";
import type { PartOfRun } from "./merge_parts.js";
import { readJson, readRun } from "./run_files.js";
import type { RunSource } from "./saved_run.js";

const sourceSchema = z.object({
  text: z.string(),
  set: z.array(z.string()),
  scenario: z.record(z.string(), z.unknown()),
});

/** @param place The folder, or the result.json in it. @throws WeirError where it is none of a part, or was changed. */
export function readPart(place: string): { part: PartOfRun; source: RunSource } {
  const folder = basename(place) === "result.json" ? dirname(place) : place;
  const file = join(folder, "result.json");
  const { result, series } = readRun(file);
  const { part, frames } = result;
  if (part === undefined || frames === undefined) {
    throw new WeirError(`${file}: not of a part`, { hint: "give the folders of weir lab run --part" });
  }
  return {
    part: {
      folder,
      result: { ...result, part, frames },
      series,
      completions: readCompletions(folder, result.fct?.count),
    },
    source: readSource(folder, part.digest),
  };
}

/** Reads the scenario in full, as it was run: any other one would have another digest. */
function readSource(folder: string, digest: string): RunSource {
  const file = join(folder, "scenario.json");
  const { data } = sourceSchema.safeParse(readJson(file));
  const scenario = data?.scenario as Scenario | undefined;
  if (data === undefined || scenario === undefined || digestOf(scenario) !== digest) {
    throw new WeirError(`${file}: not the scenario that ${join(folder, "result.json")} is of`, {
      hint: "merge with the version of weir that ran the parts",
    });
  }
  const { part: _, ...whole } = scenario;
  return { text: data.text, set: data.set, scenario: whole };
}

function readCompletions(folder: string, count = 0): PartOfRun["completions"] {
  if (count === 0) return [];
  const table = new CsvTable("fct.csv", folder);
  const names = ["flow", "message", "bytes", "start_ns", "end_ns"] as const;
  const columns = names.map((name) => table.column([name]));
  return Array.from({ length: table.rows }, (_, row) => {
    const [flow = 0, message = 0, bytes = 0, start_ns = 0, end_ns = 0] = columns.map((column) =>
      column.number(row, 0, Number.MAX_SAFE_INTEGER),
    );
    return { flow, message, bytes, start_ns, end_ns };
  });
}
