/** How far a message graph had come at each time, and when it would have on the ideal network. */
import { kCalculate, kSend, type MessageGraph } from "../scenario/graphs/graph.js";
import type { GraphResult } from "./graph_result.js";
import type { GraphTimes } from "./graph_times.js";

/** More steps than that cannot be told apart in a picture. */
const kSteps = 200;

/** @param start When its ranks began, ns. */
export function graphProgress(
  graph: MessageGraph,
  times: Pick<GraphTimes, "ended">,
  ideal: Pick<GraphTimes, "ended">,
  start: number,
): NonNullable<GraphResult["progress"]> {
  // Sends end when they are acknowledged, and calculations without a length only tie others together.
  const counted = Array.from(graph.kind.keys()).filter(
    (i) => graph.kind[i] !== kSend && !(graph.kind[i] === kCalculate && graph.size[i] === 0),
  );
  const steps = Math.min(kSteps, counted.length);
  const reached = ({ ended }: Pick<GraphTimes, "ended">, origin: number) => {
    const ends = Float64Array.from(counted, (i) => ended[i] as number)
      .filter((end) => end >= 0)
      .sort();
    return Array.from({ length: steps }, (_, step) => ends[Math.ceil(((step + 1) * counted.length) / steps) - 1])
      .filter((end) => end !== undefined)
      .map((end) => (end - origin) / 1e9);
  };
  return { steps, reached_s: reached(times, start), ideal_s: reached(ideal, 0) };
}
