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
import { type ReadGraph, readGraph } from "./read.js";

/** @returns undefined, with a problem, for a file that is none. */
export function graphOfFile(input: PatternInput<"graph">, entry: TrafficEntry): MessageGraph | undefined {
  return withoutThrowing(entry, ["file"], () => {
    const { graph, notes } = anyGraph(resolve(entry.context.directory, input.file), input);
    for (const note of notes) entry.context.found.warn(`traffic ${entry.group}: ${note}`);
    checkGraph(graph);
    return input.calculation === undefined ? graph : calculating(graph, input.calculation);
  });
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
export function graphOfCollective(input: PatternInput<"collective">, entry: TrafficEntry): MessageGraph | undefined {
  const hosts = input.hosts?.length ?? entry.context.hosts.length;
  const { collective: operation, per_host: perHost = 1, ranks = hosts * perHost, iterations = 1 } = input;
  const bytes = input.size ?? (operation === "barrier" ? kBarrierSize : kDefaultSize);
  return withoutThrowing(entry, ["algorithm"], () => {
    const chosen = chosenAlgorithm(input, entry, { ranks, perNode: perHost, bytes });
    return collectiveGraph({
      operation,
      bytes,
      ranks,
      perHost,
      iterations,
      channels: input.channels ?? chosen.channels,
      chunk: input.chunk,
      algorithm: chosen.algorithm,
    });
  });
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
  const { ranks, perNode } = size;
  // A node that is not full counts as one that is.
  const whole = { ...size, ranks: Math.ceil(ranks / perNode) * perNode };
  return chooseAlgorithm(operation, { ...whole, rate: context.rateOf(context.hosts[0] ?? ""), rules });
}

export interface CollectiveRun extends Pick<CollectiveRequest, "operation" | "bytes"> {
  algorithm?: CollectiveRequest["algorithm"] | undefined;
  ranks: number;
  perHost: number;
  /** Each begins when the one before has ended at its rank. */
  iterations: number;
  channels?: number | undefined;
  chunk?: number | undefined;
}

/** @throws WeirError for an algorithm that the operation does not have. */
export function collectiveGraph({ operation, bytes, ranks, perHost, iterations, ...how }: CollectiveRun): MessageGraph {
  const by = how.algorithm ?? algorithmsOf(operation)[0];
  const graph = new GraphBuilder(`${operation} by ${by}`, ranks);
  const all = Array.from({ length: ranks }, (_, rank) => rank);
  let ended: (Operation | undefined)[] = all.map(() => undefined);
  const { algorithm, channels, chunk } = how;
  for (let i = 0; i < iterations; i++) {
    if (iterations > 1) graph.enterPhase(`iteration ${i + 1}`);
    ended = addCollective(
      graph,
      {
        operation,
        ranks: all,
        bytes,
        perNode: perHost,
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
