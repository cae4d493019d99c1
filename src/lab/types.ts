/** What the command line and the lab agree on. */

import type { Result, Series } from "../result/result.js";
import type { Congestion } from "../scenario/types.js";
import type { LabObserver } from "./access.js";

/** One capture that the user asked for: a link ("h1--sw") or a node ("sw"), and the path of a pcap or, by its suffix, pcapng file. */
export interface CaptureRequest {
  target: string;
  file: string;
}

/** Drawn while a lab runs; see LiveView. */
export interface LabView {
  update(state: LiveState): void;
}

export interface LabOptions {
  view?: LabView | undefined;
  /** Others that look on, or have a hand in it. */
  observers?: readonly LabObserver[] | undefined;
  /** Its devices answer on a control socket; `warn` is told why where that cannot be. `metrics`: where those are served, to be told there. */
  control?: { warn(text: string): void; metrics?: string } | undefined;
  /** Once aborted, the lab stops and cleans up; see runLab(). */
  signal: AbortSignal;
  capture: readonly CaptureRequest[];
  /** Where capture files with relative paths go; exists when the lab starts. */
  captureDir: string;
}

export interface LabOutcome {
  result: Result;
  series: Series;
}

/** What a run looks like at one moment. Meant units, except the loop gap, which is wall time. */
export interface LiveState {
  /** Meant ns since traffic started, and how long it lasts. */
  elapsed_ns: number;
  duration_ns: number;
  /** Wall time = meant time * scale. */
  scale: number;
  flows: readonly LiveFlow[];
  /** The fullest queue worth watching, usually the bottleneck's; left out when there is none. */
  queue?: LiveQueue | undefined;
  congestion_control: Congestion["algorithm"];
  /** Counted since the start; CNMs of QCN, the others of DCQCN. */
  ecn_marked: number;
  cnm_sent: number;
  cnm_handled: number;
  cnp_sent: number;
  cnp_handled: number;
  pfc_sent: number;
  drops: number;
  loop_gap_max_us: number;
}

export interface LiveFlow {
  id: string;
  /** RP current rate R_C, bit/s. */
  rate_bps: number;
  /** RP target rate R_T, bit/s. */
  target_rate_bps: number;
  /** Congestion estimate, 0..1; null: the algorithm has none. */
  alpha: number | null;
}

export interface LiveQueue {
  /** "sw:r:3": switch, peer at the port, priority. */
  name: string;
  bytes: number;
  max_bytes: number;
  /** Marking thresholds in bytes, where ECN is on. */
  kmin?: number | undefined;
  kmax?: number | undefined;
  /** What the congestion point steers to, bytes, where QCN is on. */
  qeq?: number | undefined;
  /** Recent lengths in bytes, oldest first; the last 60 are drawn. */
  history: readonly number[];
}
