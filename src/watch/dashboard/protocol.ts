/**
 * Messages between the dashboard's server and its page. Times in meant ns since the run's traffic began (of daemons: since they
 * started), bytes, bit/s; arrays follow the order of the Session's lists.
 *
 * - `GET api/session`: Session. `GET api/live`: server-sent events, `rights` (a Rights, once, first), `session` (a Session, then and at
 *   each change), `history` (a History: at the beginning what is kept of the run so far, later what had no room when it happened) and `frame` (a Frame).
 * - `POST api/parameters`: ParameterChange; all of it is taken or nothing. `POST api/run`: RunRequest.
 * - `GET api/runs/ID`: the result document of a run that has ended, with its series.
 * - `GET api/inspect?port=NODE:PEER` and `?qp=NAME`: Inspection.
 *
 * A refusal has status 4xx and a Refusal.
 */
import type { AlgorithmName } from "../../congestion/algorithms.js";

import type { Frame, FrameEvent } from "../../device/frame.js";

export type { Frame, FrameEvent } from "../../device/frame.js";

export interface Session {
  version: string;
  kind: "lab" | "switch" | "nic";
  /** Time at which this server started, in ISO 8601; another one has runs and times of its own. */
  started: string;
  /** Name of the scenario or the daemon. */
  name: string;
  /** Wall time = meant time * scale; 1 for daemons. */
  scale: number;
  /** Duration of a run; null: without end. */
  duration_ns: number | null;
  congestion_control: AlgorithmName;
  topology: {
    nodes: { name: string; kind: "host" | "switch" }[];
    /** Links; rate_bps 0: unlimited. */
    links: { from: string; to: string; rate_bps: number }[];
  };
  /** Flows; a NIC daemon's are its queue pairs, to their peers, or from them where a pair is there to receive. */
  flows: { id: string; from: string; to: string; priority: number }[];
  queues: QueueDescription[];
  /** An empty list: nothing may be changed. */
  parameters: Parameter[];
  /** Labs only: the runs so far, oldest first; the last may be under way. */
  runs: RunDescription[];
  /** Daemons only: parameters that were changed, from a page or in the file; the latest ones, oldest first. Labs have them in `runs`. */
  changes: TimedChange[];
}

/** Rights of whoever has opened the stream. */
export interface Rights {
  /** Whether parameters and runs may be changed; without it there is only looking on. */
  change: boolean;
}

export interface QueueDescription {
  /** Name such as "sw:r:3": switch, peer at the port (of a daemon: the port), priority. */
  name: string;
  switch: string;
  port: string;
  priority: number;
  /** Marking thresholds, bytes; null: not marked. */
  kmin: number | null;
  kmax: number | null;
  /** Length to which QCN's congestion point steers, bytes; null: none. */
  qeq: number | null;
}

/** A parameter that can be changed while traffic flows. */
export interface Parameter {
  /** Path as in `--set`: "switch.ecn.kmax". */
  path: string;
  /** ECN, PFC, QCN, or the congestion control algorithm's. */
  group: string;
  /** Value as users write it: "200KB". */
  value: string;
  kind: "size" | "rate" | "time" | "fraction" | "number" | "flag" | "choice";
  /** Values of a `choice`. */
  choices?: string[];
  /** Meaning of the parameter, with its range. */
  description: string;
}

export interface RunDescription {
  id: number;
  state: "running" | "complete" | "stopped" | "failed";
  /** Parameters that differ from the scenario file's, as `path=value`, when it began. */
  set: string[];
  /** Changes made while it ran. */
  changes: TimedChange[];
  /** Whether the host kept up in a complete run; null for others. */
  valid: boolean | null;
  /** Error of a failed run. */
  error: string | null;
  /** Folder of its results; null while there is none. */
  folder: string | null;
}

export interface TimedChange {
  t_ns: number;
  /** `path=value`, as in `--set`. */
  set: string[];
}

/** Samples of a run's past that the server has kept, or a part of them: all are later than those of the part before. */
export interface History {
  run: number;
  samples: Sample[];
}

/** Values for charts, of a frame or of several that came one after the other: each sample begins where the one before ends. */
export interface Sample {
  since_ns: number;
  t_ns: number;
  /** `throughput` is the mean; the others are as they were last. */
  flows: Frame["flows"];
  queues: Pick<Frame["queues"], "peak">;
  /** Number of events of each kind; absent: none. */
  events: Partial<Record<FrameEvent["kind"], number>>;
}

export interface ParameterChange {
  /** `path=value`, as in `--set`. */
  set: string[];
}

export interface RunRequest {
  action: "start" | "stop";
}

export interface Refusal {
  error: string;
  /** The parameter that is wrong. */
  field?: string;
  hint?: string;
}

/** One port or queue pair in full. */
export interface Inspection {
  title: string;
  /** Facts such as state, rate, backend. */
  facts: { name: string; value: string }[];
  counters: { name: string; unit: string; labels: Record<string, string>; value: number }[];
}
