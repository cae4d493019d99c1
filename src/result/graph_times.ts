/** What the times of a message graph's operations say of it. */
import { kCalculate, kReceive, kSend, kStartOnly, type MessageGraph, rankOf } from "../scenario/graphs/graph.js";
import type { GraphResult } from "./graph_result.js";

/** By operation; -1: not yet. Times are ns. */
export interface GraphTimes {
  started: Float64Array;
  ended: Float64Array;
  /** Of a receive that has ended: the send whose message it took. */
  taken: Uint32Array;
}

/** Time of the last end, ns; acknowledgements of sends do not count. -1: nothing has ended. */
export function lastEnd({ kind }: MessageGraph, { ended }: GraphTimes): number {
  return kind.reduce((last, one, i) => (one === kSend ? last : Math.max(last, ended[i] as number)), -1);
}

type Figures = Pick<GraphResult, "ended" | "calculation_s" | "exposed_s" | "phases" | "critical">;

/** @param start When its ranks began, ns. */
export function graphFigures(graph: MessageGraph, times: GraphTimes, start: number): Figures {
  const ended = times.ended.reduce((sum, end) => sum + (end >= 0 ? 1 : 0), 0);
  let [calculation, lived] = [0, 0];
  for (let rank = 0; rank < graph.ranks; rank++) {
    const own = busyTime(graph, times, rank);
    calculation += own.calculation;
    lived += Math.max(0, own.end - start);
  }
  const perRank = 1e9 * graph.ranks;
  return {
    ended,
    calculation_s: calculation / perRank,
    exposed_s: Math.max(0, lived - calculation) / perRank,
    phases: phasesOf(graph, times, start),
    ...(ended === graph.kind.length && { critical: criticalPath(graph, times) }),
  };
}

/** Time for which any processor of a rank calculates, and its last end. */
function busyTime(graph: MessageGraph, { started, ended }: GraphTimes, rank: number) {
  const spans: [number, number][] = [];
  let end = 0;
  for (let i = graph.first[rank] as number; i < (graph.first[rank + 1] as number); i++) {
    if (graph.kind[i] === kSend || (ended[i] as number) < 0) continue;
    end = Math.max(end, ended[i] as number);
    if (graph.kind[i] === kCalculate && graph.size[i] !== 0) spans.push([started[i] as number, ended[i] as number]);
  }
  return { calculation: covered(spans), end };
}

/** Length of the union of spans. */
function covered(spans: [number, number][]): number {
  let [sum, until] = [0, Number.NEGATIVE_INFINITY];
  for (const [from, to] of spans.sort(([a], [b]) => a - b)) {
    sum += Math.max(0, to - Math.max(from, until));
    until = Math.max(until, to);
  }
  return sum;
}

function phasesOf(graph: MessageGraph, { started, ended }: GraphTimes, origin: number): GraphResult["phases"] {
  const found = graph.phases.map(() => ({ start: Number.POSITIVE_INFINITY, end: -1, calculation: 0 }));
  graph.phase.forEach((phase, i) => {
    const own = found[phase];
    const [start, end] = [started[i] as number, ended[i] as number];
    if (own === undefined || phase === 0 || start < 0) return;
    own.start = Math.min(own.start, start);
    if (graph.kind[i] !== kSend) own.end = Math.max(own.end, end);
    if (graph.kind[i] === kCalculate && end >= 0) own.calculation += end - start;
  });
  return found.flatMap(({ start, end, calculation }, i) =>
    end < 0
      ? []
      : [
          {
            name: graph.phases[i] as string,
            start_s: (start - origin) / 1e9,
            end_s: (end - origin) / 1e9,
            calculation_s: calculation / 1e9 / graph.ranks,
          },
        ],
  );
}

/** From the operation that ended last, back: each time to what it waited for. */
export function criticalPath(graph: MessageGraph, { started, ended, taken }: GraphTimes): GraphResult["critical"] {
  const path = { calculation: 0, network: 0, processor: 0, messages: 0 };
  const ranks = new Set<number>();
  let at = lastOperation(graph, ended);
  while (at !== undefined) {
    ranks.add(rankOf(graph, at));
    const start = started[at] as number;
    if (graph.kind[at] === kReceive && (ended[at] as number) > start) {
      // The receive was there first: it waited for its message.
      const message = taken[at] as number;
      path.network += (ended[at] as number) - (started[message] as number);
      path.messages++;
      at = message;
      ranks.add(rankOf(graph, at));
    } else if (graph.kind[at] === kCalculate) {
      path.calculation += (ended[at] as number) - start;
    }
    const { awaited, ready } = waitedFor(graph, { started, ended }, at);
    if (awaited !== undefined) {
      path.processor += Math.max(0, (started[at] as number) - ready);
      // What waits for a send to end waits for its acknowledgement.
      const acknowledged = ready - (started[awaited] as number);
      if (graph.kind[awaited] === kSend && acknowledged > 0) {
        path.network += acknowledged;
        path.messages++;
      }
    }
    at = awaited;
  }
  return {
    calculation_s: path.calculation / 1e9,
    network_s: path.network / 1e9,
    processor_s: path.processor / 1e9,
    messages: path.messages,
    ranks: ranks.size,
  };
}

function lastOperation({ kind }: MessageGraph, ended: Float64Array): number | undefined {
  let last: number | undefined;
  kind.forEach((one, i) => {
    if (one !== kSend && (last === undefined || (ended[i] as number) > (ended[last] as number))) last = i;
  });
  return last;
}

/** The dependency that was fulfilled last, and when. */
function waitedFor(graph: MessageGraph, { started, ended }: Omit<GraphTimes, "taken">, operation: number) {
  let [awaited, ready]: [number | undefined, number] = [undefined, -1];
  const behind = graph.firstDependency[operation + 1] as number;
  for (let i = graph.firstDependency[operation] as number; i < behind; i++) {
    const on = (graph.dependencies[i] as number) % kStartOnly;
    const at = ((graph.dependencies[i] as number) >= kStartOnly ? started[on] : ended[on]) as number;
    if (at >= ready) [awaited, ready] = [on, at];
  }
  return { awaited, ready };
}
