/** Health of a daemon, for programs that restart or watch it: `/healthz`. */
import type { PortStatus } from "./protocol.js";

/**
 * ok: all is well. degraded: it works, but not all of it, or not as it should; another start would not help. failed: the device does
 * not do its work.
 */
export type HealthStatus = "ok" | "degraded" | "failed";

export type HealthReason =
  /** The thread of the data path has ended. */
  | "worker_failed"
  /** The thread has had no turn for a second, now or in the last 10 to 20 s. */
  | "worker_starved"
  /** The thread has had no turn for a tenth of that. */
  | "worker_slow"
  | "port_down"
  /** The host takes no frames to send, or next to none. */
  | "transmit_stalled"
  /** Frames arrive that are not taken from the host. */
  | "receive_stuck";

export interface Health {
  status: HealthStatus;
  name: string;
  /** Ports whose interface is down or gone. */
  down: string[];
  reasons: { reason: HealthReason; port?: string; message: string }[];
}

export interface HealthFacts {
  name: string;
  /** Reason why the worker ended, if it has. */
  failure: string | undefined;
  /** Time since the worker was last known to turn, ns. */
  silence: number;
  /** Longest gap between two turns in the last 10 to 20 s, ns. */
  gap: number;
  ports: readonly Pick<PortStatus, "name" | "up" | "tx_stalled" | "rx_stuck">[];
}

/** Gaps of the poll loop that are far from healthy ones: a pause of PFC lasts 3.4 ms at 10 Gb/s. */
const kSlowNs = 100e6;
const kStarvedNs = 1e9;

export function assessHealth({ name, failure, silence, gap, ports }: HealthFacts): Health {
  const reasons: Health["reasons"] = [];
  const longest = Math.max(silence, gap);
  const milliseconds = `${Math.round(longest / 1e6)} ms`;
  if (failure !== undefined) {
    reasons.push({ reason: "worker_failed", message: failure });
  } else if (longest >= kStarvedNs) {
    const message = `the poll loop did not turn for ${milliseconds}: the host does not give it a CPU`;
    reasons.push({ reason: "worker_starved", message });
  } else if (longest >= kSlowNs) {
    reasons.push({ reason: "worker_slow", message: `the poll loop did not turn for ${milliseconds}` });
  }
  for (const { name: port, up, tx_stalled, rx_stuck } of ports) {
    if (!up) reasons.push({ reason: "port_down", port, message: "its interface is down or gone" });
    if (tx_stalled)
      reasons.push({ reason: "transmit_stalled", port, message: "the host takes no frames to send, they wait" });
    if (rx_stuck) reasons.push({ reason: "receive_stuck", port, message: "frames arrive and are not taken" });
  }
  const up = ports.filter((port) => port.up);
  const nothingLeaves = up.length > 0 && up.every(({ tx_stalled }) => tx_stalled);
  const fails = reasons.some(({ reason }) => kFailures.includes(reason)) || nothingLeaves;
  return {
    status: fails ? "failed" : reasons.length > 0 ? "degraded" : "ok",
    name,
    down: ports.filter((port) => !port.up).map((port) => port.name),
    reasons,
  };
}

const kFailures: readonly HealthReason[] = ["worker_failed", "worker_starved", "receive_stuck"];
