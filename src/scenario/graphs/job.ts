/** Message graphs as traffic: ranks on hosts, and a flow for each pair of ranks on different machines that exchange messages. */
import { WeirError } from "../../base/error.js";
import { filled } from "../../base/fields.js";
import type { TrafficEntry } from "../traffic_entry.js";
import type { Flow } from "../types.js";
import type { GraphOnHosts } from "./entries.js";
import { kReceive, kSend, type MessageGraph } from "./graph.js";
import type { GraphJob } from "./graph_job.js";
import { type GraphFields, graphDefaultsSchema } from "./job_schema.js";

/** @returns the job and its flows; undefined, with a problem, for what cannot be. */
export function placeGraph(
  { graph, hosts }: GraphOnHosts,
  fields: GraphFields,
  entry: TrafficEntry,
): { job: GraphJob; flows: Flow[] } | undefined {
  if (entry.context.transport !== "rc") {
    entry.problem(
      ["pattern"],
      "has messages that wait for others, which the stream transport does not tell of",
      "use reliable connections: transport: { type: rc }",
    );
    return undefined;
  }
  if (fields.operation === "read") {
    entry.problem(["operation"], "is read, by which nobody sends messages", "use write or send");
    return undefined;
  }
  const own = filled(graphDefaultsSchema, fields);
  const machines = hosts.map(entry.context.machineOf);
  const pairs = exchanges(graph, machines, fields.rendezvous);
  const job: GraphJob = {
    id: entry.group,
    graph,
    hosts,
    machines,
    start: entry.start,
    eager: own.eager,
    rendezvous: fields.rendezvous,
    inside_rate: own.inside_rate,
    inside_latency: own.inside_latency,
    pairs: new Uint32Array(2 * pairs.length),
    firstFlow: 0,
  };
  const flows = pairs.map(({ from, to, bytes, longest }, i) => {
    job.pairs[2 * i] = from;
    job.pairs[2 * i + 1] = to;
    return entry.flow(`${entry.group}/${from}-${to}`, hosts[from] as string, hosts[to] as string, {
      bytes,
      message: longest,
      onDemand: true,
      outstanding: own.outstanding,
    });
  });
  return { job, flows };
}

interface Pair {
  from: number;
  to: number;
  bytes: number;
  longest: number;
}

/** Pairs of ranks on different machines, in order. With a rendezvous each pair needs the way back, too. */
function exchanges(graph: MessageGraph, machines: readonly string[], rendezvous: number | undefined): Pair[] {
  const pairs = new Map<number, Pair>();
  const pairOf = (from: number, to: number) => {
    const key = from * graph.ranks + to;
    const known = pairs.get(key) ?? { from, to, bytes: 0, longest: 1 };
    pairs.set(key, known);
    return known;
  };
  for (let rank = 0; rank < graph.ranks; rank++) {
    for (let i = graph.first[rank] as number; i < (graph.first[rank + 1] as number); i++) {
      const peer = graph.peer[i] as number;
      if (graph.kind[i] !== kSend || machines[rank] === machines[peer]) continue;
      const pair = pairOf(rank, peer);
      const bytes = graph.size[i] as number;
      pair.bytes += bytes;
      pair.longest = Math.max(pair.longest, bytes);
      if (rendezvous !== undefined && bytes > rendezvous) pairOf(peer, rank);
    }
  }
  return [...pairs.values()].sort((a, b) => a.from - b.from || a.to - b.to);
}

/** Combines the graphs of several jobs to one; ranks of each follow those of the one before. */
export function combined(jobs: readonly Pick<GraphJob, "graph">[]): MessageGraph {
  const [only, another] = jobs;
  if (only !== undefined && another === undefined) return only.graph;
  const total = (count: (graph: MessageGraph) => number) => jobs.reduce((sum, { graph }) => sum + count(graph), 0);
  const operations = total(({ kind }) => kind.length);
  const all: MessageGraph = {
    source: jobs.map(({ graph }) => graph.source).join(", "),
    ranks: total(({ ranks }) => ranks),
    first: new Uint32Array(total(({ ranks }) => ranks) + 1),
    kind: new Uint8Array(operations),
    peer: new Uint32Array(operations),
    tag: new Uint32Array(operations),
    size: new Float64Array(operations),
    processor: new Uint8Array(operations),
    firstDependency: new Uint32Array(operations + 1),
    dependencies: new Uint32Array(total(({ dependencies }) => dependencies.length)),
    line: new Uint32Array(operations),
    phases: [""],
    phase: new Uint16Array(operations),
  };
  let [rank, operation, dependency] = [0, 0, 0];
  for (const { graph } of jobs) {
    graph.first.forEach((first, i) => {
      all.first[rank + i] = operation + first;
    });
    for (const column of ["kind", "tag", "size", "processor", "line"] as const)
      all[column].set(graph[column], operation);
    graph.peer.forEach((peer, i) => {
      const names = graph.kind[i] === kSend || (graph.kind[i] === kReceive && peer < graph.ranks);
      all.peer[operation + i] = names ? rank + peer : peer;
    });
    graph.firstDependency.forEach((first, i) => {
      all.firstDependency[operation + i] = dependency + first;
    });
    // The bit of a start stays.
    graph.dependencies.forEach((on, i) => {
      all.dependencies[dependency + i] = on + operation;
    });
    rank += graph.ranks;
    operation += graph.kind.length;
    dependency += graph.dependencies.length;
  }
  return all;
}

/** @throws WeirError where jobs ask for what hosts have in common, and differ. */
export function commonOf(
  jobs: readonly GraphJob[],
): Pick<GraphJob, "eager" | "rendezvous" | "inside_rate" | "inside_latency"> {
  const [first = { eager: 0, rendezvous: undefined, inside_rate: 0, inside_latency: 0 }] = jobs;
  for (const job of jobs) {
    for (const name of ["eager", "rendezvous", "inside_rate", "inside_latency"] as const) {
      if (job[name] !== first[name]) {
        throw new WeirError(`traffic ${job.id}: ${name} differs from that of ${jobs[0]?.id}`, {
          hint: "message graphs of one scenario have it in common",
        });
      }
    }
  }
  return first;
}
