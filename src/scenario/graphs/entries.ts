/** Entries of the `traffic` section that are message graphs: of a file, or a collective. */
import { resolve } from "node:path";
import { WeirError } from "../../base/error.js";
import type { TrafficEntry } from "../traffic_entry.js";
import type { PatternInput } from "../traffic_schema.js";
import { checkGraph } from "./check.js";
import { addCollective, algorithmsOf, type CollectiveRequest } from "./collectives/add.js";
import { readMsccl } from "./collectives/msccl.js";
import { readTunerCsv } from "./collectives/tuner_csv.js";
import { type Choice, chooseAlgorithm, type TuningCase } from "./collectives/tuning.js";
import { GraphBuilder, kCalculate, kMostNanoseconds, type MessageGraph, type Operation } from "./graph.js";
import { kBarrierSize, kDefaultSize } from "./job_schema.js";
import { type Nodes, nodesOf, placedRanks } from "./place.js";
import { type ReadGraph, readGraph } from "./read.js";

/** A graph, and the host of each of its ranks. */
export interface GraphOnHosts {
  graph: MessageGraph;
  hosts: readonly string[];
}

/** @returns undefined, with a problem, for a file that is none, or whose ranks have no place. */
export function graphOfFile(input: PatternInput<"graph">, entry: TrafficEntry): GraphOnHosts | undefined {
  const graph = withoutThrowing(entry, ["file"], () => {
    const { graph, notes } = anyGraph(resolve(entry.context.directory, input.file), input);
    for (const note of notes) entry.context.found.warn(`traffic ${entry.group}: ${note}`);
    checkGraph(graph);
    return input.calculation === undefined ? graph : calculating(graph, input.calculation);
  });
  const hosts = graph && placedRanks(graph.ranks, input, entry);
  return hosts && { graph, hosts };
}

/** The graph with its calculations so many times as long. */
function calculating(graph: MessageGraph, factor: number): MessageGraph {
  const size = graph.size.map((one, i) =>
    graph.kind[i] === kCalculate ? Math.min(kMostNanoseconds, Math.round(one * factor)) : one,
  );
  return { ...graph, size };
}

/** Reads any format. `size`: bytes of the collective of an MSCCL algorithm. @throws WeirError. */
export function anyGraph(
  file: string,
  { size: bytes = kDefaultSize, ranks }: { size?: number | undefined; ranks?: number | undefined } = {},
): ReadGraph {
  return readGraph(file, { expand: addCollective, readMsccl: (xml) => readMsccl(xml, { bytes }), ranks });
}

/** @returns undefined, with a problem, for what cannot be. */
export function graphOfCollective(input: PatternInput<"collective">, entry: TrafficEntry): GraphOnHosts | undefined {
  const most = input.hosts?.length ?? entry.context.hosts.length;
  const { collective: operation, per_host: perHost = 1, ranks = most * perHost, iterations = 1 } = input;
  const bytes = input.size ?? (operation === "barrier" ? kBarrierSize : kDefaultSize);
  const hosts = placedRanks(ranks, input, entry);
  if (hosts === undefined) return undefined;
  const nodes = nodesOf(hosts, entry.context);
  const graph = withoutThrowing(entry, ["algorithm"], () => {
    // A node that is not full counts as one that is.
    const size = { ranks: nodes.count * nodes.most, perNode: nodes.most, bytes };
    const chosen = chosenAlgorithm(input, entry, size);
    return collectiveGraph({
      operation,
      bytes,
      nodes,
      iterations,
      channels: input.channels ?? chosen.channels,
      chunk: input.chunk,
      algorithm: chosen.algorithm,
    });
  });
  return graph && { graph, hosts };
}

/** With `auto`, or a tuner's rules, what NCCL would take. */
function chosenAlgorithm(
  { collective: operation, algorithm, tuner }: PatternInput<"collective">,
  { context }: TrafficEntry,
  size: Pick<TuningCase, "ranks" | "perNode" | "bytes">,
): Partial<Pick<Choice, "algorithm" | "channels">> {
  if (algorithm !== undefined && algorithm !== "auto") {
    if (tuner !== undefined)
      throw new WeirError(`is ${algorithm}, and there is a tuner`, {
        hint: "rules of a tuner are for algorithm: auto",
      });
    return { algorithm };
  }
  if (algorithm === undefined && tuner === undefined) return {};
  const rules = tuner === undefined ? [] : readTunerCsv(resolve(context.directory, tuner));
  return chooseAlgorithm(operation, { ...size, rate: context.rateOf(context.hosts[0] ?? ""), rules });
}

export interface CollectiveRun extends Pick<CollectiveRequest, "operation" | "bytes"> {
  algorithm?: CollectiveRequest["algorithm"] | undefined;
  nodes: Nodes;
  /** Each begins when the one before has ended at its rank. */
  iterations: number;
  channels?: number | undefined;
  chunk?: number | undefined;
}

/** @throws WeirError for an algorithm that the operation does not have. */
export function collectiveGraph({ operation, bytes, nodes, iterations, ...how }: CollectiveRun): MessageGraph {
  const by = how.algorithm ?? algorithmsOf(operation)[0];
  const { order, perNode = 1, nics } = nodes;
  if (nodes.perNode === undefined && (by?.startsWith("two-level") || by === "pxn")) {
    throw new WeirError(`${operation}: ${by}: some machines have fewer than ${nodes.most} ranks`, {
      hint: "it takes as many ranks on each machine",
    });
  }
  const graph = new GraphBuilder(`${operation} by ${by}`, order.length);
  let ended: (Operation | undefined)[] = order.map(() => undefined);
  const { algorithm, channels, chunk } = how;
  for (let i = 0; i < iterations; i++) {
    if (iterations > 1) graph.enterPhase(`iteration ${i + 1}`);
    ended = addCollective(
      graph,
      {
        operation,
        ranks: order,
        root: order.indexOf(0),
        bytes,
        perNode,
        nics,
        ...(algorithm && { algorithm }),
        ...(channels && { channels }),
        ...(chunk && { chunk }),
      },
      ended,
    );
  }
  return graph.build();
}

function withoutThrowing<T>(entry: TrafficEntry, field: readonly string[], make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof WeirError)) throw error;
    entry.problem(field, error.message, error.hint);
    return undefined;
  }
}
