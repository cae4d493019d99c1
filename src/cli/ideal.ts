/** Message graphs of a scenario on an ideal network, where each message is alone. */
import { graphResult, idealTimes } from "../clocks/graph_watch.js";
import { loadAddon } from "../native/addon.js";
import type { SimulationAddon } from "../native/simulation_types.js";
import type { GraphResult } from "../result/graph_result.js";
import { graphGrid, phaseGrid } from "../result/report/graph_tables.js";
import { drawGrid } from "../result/report/table.js";
import { Fabric } from "../scenario/fabric.js";
import type { Scenario } from "../scenario/types.js";
import { type CliContext, kExit, print, UsageError } from "./context.js";

export function idealResults(scenario: Scenario): GraphResult[] {
  if (scenario.graphs.length === 0) {
    throw new UsageError("--network ideal: the scenario has no message graph", {
      hint: "flows by themselves have no end that others wait for",
    });
  }
  const addon = loadAddon<SimulationAddon>();
  const fabric = new Fabric(scenario);
  return scenario.graphs.map((job) => {
    const times = idealTimes(job, fabric, addon);
    return graphResult({ ...job, start: 0 }, times, times);
  });
}

/** Prints them; exit status 1 when a graph does not end. */
export function tellIdeal(context: CliContext, json: boolean | undefined, scenario: Scenario): number {
  const graphs = idealResults(scenario);
  print(context, json, { scenario: scenario.name, network: "ideal", graphs }, (color) =>
    [graphGrid(graphs), phaseGrid(graphs)]
      .filter(({ rows }) => rows.length > 0)
      .map((grid) => drawGrid(grid, color))
      .join("\n"),
  );
  return graphs.every(({ time_s }) => time_s !== undefined) ? kExit.ok : kExit.invalid;
}
