/** Message graphs of a run: when they are done, or stand still, and their results. */
import type { OperationTimes, SimulationAddon, SimulationProgress } from "../native/simulation_types.js";
import { graphProgress } from "../result/graph_progress.js";
import type { GraphResult } from "../result/graph_result.js";
import { kMostEvents, timeLine, traceEvents, traceFile } from "../result/graph_timeline.js";
import { type GraphTimes, graphFigures, lastEnd } from "../result/graph_times.js";
import type { Fabric } from "../scenario/fabric.js";
import { kSend, type MessageGraph, operationName } from "../scenario/graphs/graph.js";
import type { GraphJob } from "../scenario/graphs/graph_job.js";
import { idealTimes } from "./graph_networks.js";

/** Shortest time between two looks, ns; later looks are a 64th of the time so far apart. */
const kFirstLook = 10_000;
/** Operations that wait and are named. */
const kNamed = 3;

/** A simulation's graphs are looked at when virtual time alone says so: then the end does not depend on how the run is cut. */
export class GraphWatch {
  done = false;
  /** Why they cannot end; undefined: they have, or may. */
  stuck: string | undefined;
  /** When the last of them ended, ns; undefined: not all have. */
  endedAt: number | undefined;
  readonly operations: number;

  constructor(private readonly jobs: readonly GraphJob[]) {
    this.operations = jobs.reduce((sum, { graph }) => sum + graph.kind.length, 0);
  }

  nextLook(now: number, until: number): number {
    return Math.min(until, now + Math.max(kFirstLook, Math.ceil(now / 64)));
  }

  look({
    operations_ended: ended,
    moves,
    flows_failed: failed,
  }: Pick<SimulationProgress, "operations_ended" | "moves" | "flows_failed">): void {
    this.done = ended === this.operations || !moves || failed > 0;
    if (!this.done || ended === this.operations) return;
    this.stuck =
      failed > 0
        ? `${failed} connections of message graphs failed, with ${this.operations - ended} operations to go`
        : `message graphs cannot end: ${this.operations - ended} of ${this.operations} operations wait for ever`;
  }

  /** @param times Of all operations, those of each job behind those of the one before. */
  results(times: OperationTimes, fabric: Fabric, addon: Pick<SimulationAddon, "IdealNetwork">): GraphResult[] {
    const results = graphResults(this.jobs, times, fabric, addon);
    if (this.stuck !== undefined) this.stuck += this.waiting(times);
    else if (this.done)
      this.endedAt = Math.max(...this.jobs.map((job, i) => job.start + Math.round((results[i]?.time_s ?? 0) * 1e9)));
    return results;
  }

  /** The time line as a file; undefined: there are many operations, and nobody has asked for it. */
  timeline(times: OperationTimes, asked: boolean): string | undefined {
    if (this.operations > kMostEvents && !asked) return undefined;
    let at = 0;
    const events = this.jobs.flatMap(({ id, graph, hosts }, job) => {
      const own = part(times, at, graph.kind.length);
      at += graph.kind.length;
      return traceEvents(job, id, graph, own, hosts);
    });
    return traceFile(events);
  }

  /** Names of the first operations that have begun and not ended. */
  private waiting({ started, ended }: OperationTimes): string {
    const names: string[] = [];
    let at = 0;
    for (const { graph } of this.jobs) {
      for (let i = 0; i < graph.kind.length && names.length < kNamed; i++) {
        if ((started[at + i] as number) >= 0 && (ended[at + i] as number) < 0) names.push(operationName(graph, i));
      }
      at += graph.kind.length;
    }
    return names.length > 0 ? `: ${names.join("; ")}` : "";
  }
}

/** Entries of one job; positions count from its first. */
function part({ started, ended, taken }: OperationTimes, first: number, count: number): GraphTimes {
  return {
    started: started.subarray(first, first + count),
    ended: ended.subarray(first, first + count),
    taken: taken.subarray(first, first + count).map((message) => message - first),
  };
}

/** @param times As those of GraphWatch.results(). */
export function graphResults(
  jobs: readonly GraphJob[],
  times: OperationTimes,
  fabric: Fabric,
  addon: Pick<SimulationAddon, "IdealNetwork">,
): GraphResult[] {
  let at = 0;
  return jobs.map((job) => {
    const own = part(times, at, job.graph.kind.length);
    at += job.graph.kind.length;
    return graphResult(job, own, idealTimes(job, fabric, addon));
  });
}

export function graphResult({ id, graph, hosts, start }: GraphJob, times: GraphTimes, ideal: GraphTimes): GraphResult {
  const figures = graphFigures(graph, times, start);
  const sends = graph.kind.reduce((sum, kind) => sum + (kind === kSend ? 1 : 0), 0);
  const [time, least] = [lastEnd(graph, times) - start, lastEnd(graph, ideal)];
  const complete = figures.ended === graph.kind.length;
  return {
    id,
    source: graph.source,
    ranks: graph.ranks,
    operations: graph.kind.length,
    messages: sends,
    bytes: bytesOf(graph),
    ...(complete && { time_s: Math.max(0, time) / 1e9 }),
    ideal_s: Math.max(0, least) / 1e9,
    ...(complete && least > 0 && { slowdown: time / least }),
    ...figures,
    time_line: timeLine(graph, times, hosts, start),
    progress: graphProgress(graph, times, ideal, start),
  };
}

function bytesOf({ kind, size }: MessageGraph): number {
  return kind.reduce((sum, one, i) => sum + (one === kSend ? (size[i] as number) : 0), 0);
}
