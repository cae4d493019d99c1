/** Message graphs of a scenario on a network without packets: ideal, where each message is alone, or fair shares of links. */
import { Option } from "commander";
import { fairTimes, idealTimes } from "../clocks/graph_networks.js";
import { graphResult, graphResults } from "../clocks/graph_watch.js";
import { loadAddon } from "../native/addon.js";
import type { SimulationAddon } from "../native/simulation_types.js";
import type { GraphResult } from "../result/graph_result.js";
import { type LinkLoad, linkLoads } from "../result/link_loads.js";
import { graphGrid, linkLoadGrid, phaseGrid } from "../result/report/graph_tables.js";
import { drawGrid } from "../result/report/table.js";
import { Fabric } from "../scenario/fabric.js";
import type { Scenario } from "../scenario/types.js";
import { type CliContext, kExit, print, UsageError, warn } from "./context.js";

export type NetworkKind = "packets" | "ideal" | "fair";

export const networkOption = () =>
  new Option(
    "--network <kind>",
    "packets; or, of message graphs and without packets: ideal, each message alone, or fair, max-min fair shares of links",
  )
    .choices(["packets", "ideal", "fair"])
    .default("packets");

export interface NetworkResults {
  graphs: GraphResult[];
  /** The links that carried most, of fair shares. */
  links?: LinkLoad[];
}

/** Warns of what a scenario has, and these networks have not. */
export function networkResults(
  context: CliContext,
  scenario: Scenario,
  kind: Exclude<NetworkKind, "packets">,
): NetworkResults {
  if (scenario.graphs.length === 0) {
    throw new UsageError(`--network ${kind}: the scenario has no message graph`, {
      hint: "flows by themselves have no end that others wait for",
    });
  }
  const missing = leftOut(scenario);
  if (missing.length > 0) warn(context, `--network ${kind} leaves out: ${missing.join(", ")}`);
  const addon = loadAddon<SimulationAddon>();
  const fabric = new Fabric(scenario);
  if (kind === "fair") {
    const { times, carried } = fairTimes(scenario, fabric, addon);
    const graphs = graphResults(scenario.graphs, times, fabric, addon);
    return { graphs, links: linkLoads(scenario, carried, graphs) };
  }
  return {
    graphs: scenario.graphs.map((job) => {
      const times = idealTimes(job, fabric, addon);
      return graphResult({ ...job, start: 0 }, times, times);
    }),
  };
}

/** What only packets have. */
function leftOut({ flows, tcp, programs, links, failures, faults, changes }: Scenario): string[] {
  const others = flows.filter(({ onDemand }) => !onDemand).length + tcp.length + programs.length;
  return [
    others > 0 ? `traffic that is no message graph (${others})` : [],
    failures.length > 0 ? "failures" : [],
    faults.length > 0 ? "faults" : [],
    links.some(({ impairment }) => impairment !== undefined) ? "impairments" : [],
    changes.length > 0 ? "changes of rates" : [],
  ].flat();
}

/** Prints them; exit status 1 when a graph does not end. */
export function tellNetwork(
  context: CliContext,
  json: boolean | undefined,
  scenario: Scenario,
  kind: Exclude<NetworkKind, "packets">,
): number {
  const results = networkResults(context, scenario, kind);
  const { graphs, links } = results;
  print(context, json, { scenario: scenario.name, network: kind, ...results }, (color) =>
    [graphGrid(graphs, kNames[kind]), phaseGrid(graphs), linkLoadGrid(links)]
      .filter(({ rows }) => rows.length > 0)
      .map((grid) => drawGrid(grid, color))
      .join("\n\n"),
  );
  return graphs.every(({ time_s }) => time_s !== undefined) ? kExit.ok : kExit.invalid;
}

/** What tables call a network, so that nobody takes their figures for those of packets. */
export const kNames: Readonly<Record<NetworkKind, string | undefined>> = {
  packets: undefined,
  ideal: "ideal network, no packets",
  fair: "fair shares of links, no packets",
};
