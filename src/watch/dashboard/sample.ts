/** Makes the samples that charts keep of frames, on the server as in the page. */
import type { Frame, Sample } from "./protocol.js";

/** Samples that are kept of a run at most: ten minutes of single frames. */
export const kMostSamples = 12_000;

export function sampleOf({ since_ns, t_ns, flows, queues, events }: Frame): Sample {
  const counts: Sample["events"] = {};
  for (const { kind, count } of events) counts[kind] = (counts[kind] ?? 0) + count;
  const { rate, target, alpha, throughput } = flows;
  return {
    ...{ since_ns, t_ns },
    flows: { rate: rounded(rate, 1), target: rounded(target, 1), alpha: rounded(alpha, 1e4), throughput },
    queues: { peak: queues.peak },
    events: counts,
  };
}

/** Rounds to the digits that can be seen in a chart. */
function rounded(values: readonly (number | null)[], parts: number): (number | null)[] {
  return values.map((value) => (value === null ? null : Math.round(value * parts) / parts));
}

/** Merges two samples into one; `later` follows at once. */
export function merged(earlier: Sample, later: Sample): Sample {
  const [before, after] = [earlier, later].map(({ since_ns, t_ns }) => t_ns - since_ns) as [number, number];
  const events = { ...earlier.events };
  for (const [kind, count] of Object.entries(later.events) as [keyof Sample["events"], number][]) {
    events[kind] = (events[kind] ?? 0) + count;
  }
  return {
    since_ns: earlier.since_ns,
    t_ns: later.t_ns,
    flows: {
      ...later.flows,
      throughput: later.flows.throughput.map((value, flow) =>
        Math.round(((earlier.flows.throughput[flow] ?? 0) * before + value * after) / (before + after)),
      ),
    },
    // The queues of a switch become more.
    queues: { peak: later.queues.peak.map((value, queue) => Math.max(value, earlier.queues.peak[queue] ?? 0)) },
    events,
  };
}
