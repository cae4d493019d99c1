/** From counters to the parts of a result that a run has on the wire and in virtual time. */
import type { Flow, Scenario } from "../config/types.js";
import type { CounterView } from "../native/counters.js";
import type { Distribution } from "../native/types.js";
import { kEthernetOverhead, kHeaderBytes } from "../wire/frame_size.js";
import type { FlowResult, NicResult, Result, SwitchResult } from "./result.js";

/** Every frame of the run, MAC control and what congestion points made included: sent + duplicated = received + dropped + impaired + missing. */
export interface FrameAccount {
  sent: number;
  received: number;
  /** By the switches, all reasons. */
  dropped: number;
  duplicated: number;
  /** Lost on purpose. */
  impaired: number;
  /** Sent, and not accounted for in any other way. */
  missing: number;
}

type Sums = Pick<CounterView, "sum">;

/**
 * @param nics All NICs, without what their queue pairs count.
 * @param faults Frames that impairments have made and taken.
 */
export function accountFrames(
  switches: CounterView,
  nics: Sums,
  faults: { duplicated: number; lost: number },
): FrameAccount {
  const both = (name: string) => switches.sum(name) + nics.sum(name);
  const dropped = Object.values(switches.group("drop_")).reduce((sum, n) => sum + n, 0);
  // MAC control ends at the other end of its link; impairments do not spare it.
  const control = ["rx_pfc_frames", "rx_pause_frames"].reduce((sum, name) => sum + both(name), 0);
  const unknown = nics.sum("rx_unsupported_op_phy") + switches.sum("rx_mac_control_unknown");
  const sent = nics.sum("tx_packets") + both("tx_pfc_frames") + switches.sum("cn_cp_transmitted_cnms");
  const received = nics.sum("rx_packets") + control + unknown;
  const duplicated = faults.duplicated + switches.sum("flood_copies");
  const impaired = faults.lost;
  return { sent, received, dropped, duplicated, impaired, missing: sent + duplicated - received - dropped - impaired };
}

/** What a result says of its scenario. */
export function runFacts(scenario: Scenario): Pick<Result, "seed" | "duration_s" | "warmup_s" | "profile"> & {
  path_mtu: number | number[];
  payload_share: number;
} {
  const pathMtus = [...new Set(scenario.hosts.map((host) => host.path_mtu))];
  const [first] = pathMtus;
  return {
    seed: scenario.seed,
    duration_s: scenario.duration / 1e9,
    warmup_s: scenario.warmup / 1e9,
    profile: scenario.congestion.algorithm === "none" ? "none" : scenario.congestion.profile,
    path_mtu: pathMtus.length === 1 && first !== undefined ? first : pathMtus,
    // What headers, FCS, preamble and gap leave of a link's rate for payload, in packets of the path MTU.
    payload_share: Math.min(...pathMtus.map((mtu) => mtu / (mtu + kHeaderBytes + kEthernetOverhead))),
  };
}

/** `delivered` in `seconds`; no time gives no rate. */
export function flowResult(
  flow: Flow,
  counters: { sender: Sums; receiver: Sums },
  delivered: { bytes: number; wireBytes: number },
  seconds: number,
): FlowResult {
  const { sender, receiver } = counters;
  return {
    id: flow.id,
    from: flow.from,
    to: flow.to,
    priority: flow.priority,
    goodput_bps: seconds > 0 ? (delivered.bytes * 8) / seconds : 0,
    wire_bps: seconds > 0 ? (delivered.wireBytes * 8) / seconds : 0,
    packets: sender.sum("tx_packets"),
    lost: receiver.sum("lost"),
    ecn_marked: receiver.sum("ecn_marked"),
    cnp_sent: receiver.sum("cnp_sent"),
    cnp_handled: sender.sum("cnp_handled"),
  };
}

/** `queues`: those of this switch; `port` is the peer's name. */
export function switchResult(
  counters: CounterView,
  queues: readonly (Distribution & { port: string; priority: number })[],
): SwitchResult {
  const lengths: SwitchResult["queues"] = {};
  const distributions: Record<string, Record<string, [number, number][]>> = {};
  for (const { port, priority, mean, p50, p95, p99, max, cdf } of queues) {
    lengths[port] = { ...lengths[port], [priority]: { mean, p50, p95, p99, max } };
    distributions[port] = { ...distributions[port], [priority]: cdf };
  }
  return {
    drops: counters.group("drop_"),
    ecn_marked: counters.sum("wred_ecn_marked_packets"),
    pfc_sent: counters.byPriority("pfc_tx_packets"),
    pfc_received: counters.byPriority("pfc_rx_packets"),
    pauses: counters.byPriority("pfc_tx_transitions"),
    queues: lengths,
    queue_cdf: distributions,
  };
}

export function nicResult(counters: CounterView): NicResult {
  return {
    np_cnp_sent: counters.sum("np_cnp_sent"),
    rp_cnp_handled: counters.sum("rp_cnp_handled"),
    pfc_received: counters.byPriority("rx_prio_pause"),
    pfc_sent: counters.byPriority("tx_prio_pause"),
  };
}
