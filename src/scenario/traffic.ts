// Makes flows of the entries of the `traffic` section.
import { graphOfCollective, graphOfFile } from "./graphs/entries.js";
import type { GraphJob } from "./graphs/graph_job.js";
import { placeGraph } from "./graphs/job.js";
import { expandIncast, expandList, expandPairs, expandPermutation, expandPoisson } from "./patterns.js";
import { type TrafficContext, TrafficEntry } from "./traffic_entry.js";
import type { FlowEntryInput, FlowsInput, PatternInput, TrafficInput } from "./traffic_schema.js";
import type { Flow } from "./types.js";

/** Expands every entry that makes flows, in order. Errors go to `context.found`; entries that have any make no flows. */
export function resolveTraffic(
  entries: readonly TrafficInput[],
  context: TrafficContext,
): { flows: Flow[]; graphs: GraphJob[] } {
  const used = new Map<string, number>();
  const flows: Flow[] = [];
  const graphs: GraphJob[] = [];
  entries.forEach((input, i) => {
    if (input.pattern === "tcp" || input.pattern === "program") return;
    const own =
      input.pattern === "graph" || input.pattern === "collective"
        ? place(input, ["traffic", i], context, graphs, flows.length)
        : expand(input, ["traffic", i], context, used);
    for (const flow of own) flows.push(flow);
  });
  return { flows, graphs };
}

/** Flows of a message graph, which is added to `graphs`; its first is number `firstFlow`. */
function place(
  input: PatternInput<"graph"> | PatternInput<"collective">,
  path: readonly (string | number)[],
  context: TrafficContext,
  graphs: GraphJob[],
  firstFlow: number,
): Flow[] {
  const entry = new TrafficEntry(input, input.id ?? input.pattern, path, context);
  const graph = input.pattern === "graph" ? graphOfFile(input, entry) : graphOfCollective(input, entry);
  const placed = graph && placeGraph(graph, input, entry);
  if (placed === undefined) return [];
  graphs.push({ ...placed.job, firstFlow });
  return placed.flows;
}

/** Number of each flow's application, which is its traffic entry. */
export function applications(flows: readonly Pick<Flow, "group">[]): number[] {
  const numbers = new Map<string, number>();
  return flows.map(({ group }) => {
    const number = numbers.get(group) ?? numbers.size;
    numbers.set(group, number);
    return number;
  });
}

/** Flows from and to a host, with their numbers among all: each is a queue pair of its NIC, in this order. */
export function flowsAt(flows: readonly Flow[], host: string): { flow: Flow; number: number }[] {
  return flows.flatMap((flow, number) => (flow.from === host || flow.to === host ? [{ flow, number }] : []));
}

function expand(
  input: Exclude<FlowEntryInput, { pattern: "graph" | "collective" }>,
  path: readonly (string | number)[],
  context: TrafficContext,
  used: Map<string, number>,
): Flow[] {
  const entry = (group: string) => new TrafficEntry(input, input.id ?? group, path, context);
  switch (input.pattern) {
    case undefined:
    case "flows":
      return expandFlows(input, entry, used);
    case "incast":
      return expandIncast(input, entry("incast"));
    case "permutation":
      return expandPermutation(input, entry("permutation"));
    case "poisson":
      return expandPoisson(input, entry("poisson"));
    case "pairs":
      return expandPairs(input, entry("pairs"));
    case "list":
      return expandList(input, entry("list"));
  }
}

/** `used`: number of flows so far with each id that nobody chose. */
function expandFlows(input: FlowsInput, entryOf: (group: string) => TrafficEntry, used: Map<string, number>): Flow[] {
  const senders = Array.isArray(input.from) ? input.from : [input.from];
  return senders.flatMap((from) => {
    const entry = entryOf(`${from}-${input.to}`);
    const id = input.id !== undefined && senders.length > 1 ? `${input.id}/${from}` : entry.group;
    return Array.from({ length: entry.qps }, (_, i): Flow => {
      // Ids that nobody chose go on counting, so that two entries between the same hosts don't collide.
      const number = input.id === undefined ? (used.get(id) ?? 0) + 1 : i + 1;
      used.set(id, number);
      return entry.flow(number > 1 ? `${id}#${number}` : id, from, input.to);
    });
  });
}
