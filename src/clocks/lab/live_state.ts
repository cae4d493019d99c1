/** States of a running lab, for LiveView to draw. */
import { hasAlpha, hasWindow } from "../../congestion/flow_state.js";
import { kLosses } from "../../native/counters.js";
import { queueThresholds } from "../../result/thresholds.js";
import type { LabAccess, LabObserver } from "./access.js";

const kHistory = 60;

/** State of a run at one moment. */
export type LiveState = ReturnType<LiveStates["state"]>;
export type LiveQueue = NonNullable<LiveState["queue"]>;

/** View that is drawn while a lab runs; see LiveView. */
export interface LabView {
  update(state: LiveState): void;
}

export class LiveStates implements LabObserver {
  private readonly history: number[] = [];
  private queueMax = 0;

  constructor(private readonly view: LabView) {}

  looked(lab: LabAccess): void {
    this.view.update(this.state(lab));
  }

  /** Returns the state in meant units, except the loop gap, which is wall time. */
  state(lab: LabAccess) {
    const { scenario, recorder } = lab;
    const [switches, nics] = [lab.switches.counters, lab.nics.counters];
    const { algorithm } = scenario.congestion;
    // Samples after the end of traffic show an empty network.
    const end = Math.floor(scenario.duration / scenario.probes.interval) + 1;
    const last = (list: readonly number[] | undefined) => list?.slice(0, end).at(-1) ?? 0;
    return {
      // Time since traffic started, and its duration.
      elapsed_ns: Math.min(scenario.duration, Math.max(0, lab.now())),
      duration_ns: scenario.duration,
      scale: lab.scale,
      flows: scenario.flows.map(({ id }) => {
        const flow = recorder.flows.get(id);
        // Current and target rate (R_C, R_T); alpha is null where the algorithm has none.
        const alpha = hasAlpha(algorithm) ? last(flow?.alpha) : null;
        if (!hasWindow(algorithm))
          return { id, rate_bps: last(flow?.rate), target_rate_bps: last(flow?.target), alpha };
        // Senders with a window have no rate, so the rate of what arrives is shown.
        const [before = 0, now = before] = flow?.bytes.slice(0, end).slice(-2) ?? [];
        const arriving = ((now - before) * 8e9) / scenario.probes.interval;
        return { id, rate_bps: arriving, target_rate_bps: arriving, alpha };
      }),
      queue: this.fullestQueue(lab),
      congestion_control: algorithm,
      // Counts since the start; CNMs are of QCN, the others of DCQCN.
      cnm_sent: switches.of("cnm").sum(),
      cnm_handled: nics.sum("rp_cnm_handled"),
      ecn_marked: switches.of("mark").sum(),
      cnp_sent: nics.sum("np_cnp_sent"),
      cnp_handled: nics.sum("rp_cnp_handled"),
      pfc_sent: switches.of("pause_tx").sum(),
      drops: switches.of(...kLosses).sum() + nics.of(...kLosses).sum(),
      loop_gap_max_us: Math.max(lab.switches.worker.worstGap(), lab.nics.worker.worstGap()) / 1000,
    };
  }

  /** The probed queue that has been longest so far: the bottleneck. */
  private fullestQueue({ recorder, scenario }: LabAccess) {
    let name: string | undefined;
    let most = -1;
    for (const [key, queue] of recorder.queues) {
      const peak = queue.peak.reduce((max, x) => Math.max(max, x), 0);
      if (peak > most) [name, most] = [key, peak];
    }
    const queue = name === undefined ? undefined : recorder.queues.get(name);
    if (name === undefined || queue === undefined) return undefined;
    const bytes = queue.bytes.at(-1) ?? 0;
    this.history.push(bytes);
    if (this.history.length > kHistory) this.history.shift();
    this.queueMax = Math.max(this.queueMax, most);
    return {
      name,
      bytes,
      max_bytes: this.queueMax,
      history: this.history,
      ...queueThresholds(scenario, [name])[name],
    };
  }
}
