/** Lengths of queues at which switches act, for whoever draws queues. */
import { queuePlace } from "./queues.js";
import type { SavedSource } from "./saved_run.js";

/** Lengths at which a queue is marked, and to which its congestion point steers, bytes. */
export interface QueueThresholds {
  qeq?: number | undefined;
  kmin?: number | undefined;
  kmax?: number | undefined;
}

/** Kmin and Kmax of every queue that marks, Q_eq of every congestion point, by queue name. */
export function queueThresholds(
  scenario: Pick<SavedSource["scenario"], "switches">,
  queues: readonly string[],
): Record<string, QueueThresholds> {
  const found: Record<string, QueueThresholds> = {};
  for (const name of queues) {
    const { device, priority } = queuePlace(name);
    const own = scenario.switches.find((one) => one.name === device);
    const on = (section: { enabled: boolean; priorities: readonly number[] } | undefined) =>
      section?.enabled === true && section.priorities.includes(Number(priority));
    const thresholds = {
      ...(on(own?.ecn) && { kmin: own?.ecn?.kmin, kmax: own?.ecn?.kmax }),
      ...(on(own?.qcn) && { qeq: own?.qcn?.cpQSp }),
    };
    if (Object.keys(thresholds).length > 0) found[name] = thresholds;
  }
  return found;
}
