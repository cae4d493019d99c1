/** Results of the flows of each traffic entry. */

import type { Scenario } from "../scenario/types.js";
import type { FlowCompletion } from "./completions.js";
import type { GroupResult } from "./result.js";
import { spread } from "./statistics.js";

/**
 * Returns results by group, in the order of the flows.
 * @param goodputs Goodput of each flow, bit/s.
 * @param table All transfers that were complete.
 */
export function groupResults(
  { flows, warmup }: Pick<Scenario, "flows" | "warmup">,
  goodputs: readonly number[],
  table: readonly FlowCompletion[],
): Record<string, GroupResult> {
  const groups = new Map<string, { goodputs: number[]; throughputs: number[] }>();
  const ofFlow = flows.map(({ group }, i) => {
    const own = groups.get(group) ?? { goodputs: [], throughputs: [] };
    groups.set(group, own);
    own.goodputs.push(goodputs[i] as number);
    return own;
  });
  for (const { flow, bytes, start_ns, end_ns } of table) {
    if (start_ns >= warmup) ofFlow[flow]?.throughputs.push((8e9 * bytes) / (end_ns - start_ns));
  }
  return Object.fromEntries(
    [...groups].map(([name, own]): [string, GroupResult] => [
      name,
      {
        flows: own.goodputs.length,
        goodput_bps: { ...spread(own.goodputs) },
        ...(own.throughputs.length > 0 && {
          transfers: { count: own.throughputs.length, throughput_bps: { ...spread(own.throughputs) } },
        }),
      },
    ]),
  );
}
