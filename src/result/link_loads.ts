/** What message graphs have put on links, where no packets were counted. */
import type { Scenario } from "../scenario/types.js";
import type { GraphResult } from "./graph_result.js";

/** One direction of a link. */
export interface LinkLoad {
  from: string;
  to: string;
  /** Bytes of messages. */
  bytes: number;
  /** Part of what it could have carried from time 0 until the last graph had ended; absent where it has no limit. */
  utilisation?: number;
}

/** Links that are told. */
const kMost = 10;

/** @param carried Bytes by Hop.direction. @returns the busiest links first; of those alike the first of the scenario. */
export function linkLoads(
  { links, graphs: jobs }: Pick<Scenario, "links" | "graphs">,
  carried: Float64Array,
  graphs: readonly GraphResult[],
): LinkLoad[] {
  const end_s = Math.max(0, ...graphs.map(({ time_s = 0 }, i) => (jobs[i]?.start ?? 0) / 1e9 + time_s));
  const loads = links.flatMap(({ from, to, rate }, i) =>
    [
      { from, to, bytes: carried[2 * i] as number },
      { from: to, to: from, bytes: carried[2 * i + 1] as number },
    ].map((load) => ({
      ...load,
      ...(rate > 0 && end_s > 0 && { utilisation: (8 * load.bytes) / (rate * end_s) }),
    })),
  );
  const order = (load: LinkLoad) => load.utilisation ?? 0;
  return loads
    .filter(({ bytes }) => bytes > 0)
    .sort((a, b) => order(b) - order(a) || b.bytes - a.bytes)
    .slice(0, kMost);
}
