/** Makes the parts of a result that a run has on the wire and in virtual time, from counters. */

import { type Congestion, profileText } from "../congestion/algorithms.js";
import { hearsCnms, hearsCnps, hearsTelemetry } from "../congestion/flow_state.js";
import { type CounterView, type Meaning, reasonOf } from "../native/counters.js";
import type { Distribution } from "../native/histogram.js";
import { sendsCnTags } from "../scenario/cn_domain.js";
import type { Flow, HostConfig, Scenario } from "../scenario/types.js";
import { kCnTagBytes, kEthernetOverhead, kHeaderBytes, kTelemetryBytes } from "../wire/frame_size.js";
import type { FlowResult, NicResult, Result, SwitchResult } from "./result.js";

/**
 * Account of every frame of the run, MAC control and CNMs included: sent + duplicated = received + dropped + impaired + missing. In a
 * part's account there is `from_parts` on the one side, and `to_parts` on the other.
 */
export type FrameAccount = NonNullable<Result["frames"]>;

type Sums = Pick<CounterView, "sum">;

interface Beyond {
  /** Links that count for themselves; the devices at the ends of others count for those. */
  links?: CounterView;
  /** Whether links may be down: what is sent into those is told of for itself. */
  failing?: boolean;
  /** Frames of a part to others, and from them, at each of the links there. */
  crossed?: readonly { sent: number; received: number }[];
}

/** @param nics All NICs. */
export function accountFrames(
  switches: CounterView,
  nics: CounterView,
  { links, failing, crossed }: Beyond = {},
): FrameAccount {
  const all = (meaning: Meaning) =>
    [switches, nics, ...(links ? [links] : [])].reduce((sum, view) => sum + view.of(meaning).sum(), 0);
  // Frames that NICs had to send and their host did not take are missing.
  const sent = nics.of("sent", "refused", "down", "control_tx").sum() + switches.of("made", "cnm", "control_tx").sum();
  // MAC control ends at the other end of its link; impairments do not spare it.
  const received = nics.of("received", "control_rx").sum() + switches.of("taken", "control_rx").sum();
  const dropped = switches.of("drop").sum();
  const duplicated = all("duplicate");
  const impaired = all("fault");
  const link_down = failing ? all("down") : undefined;
  const sum = (field: "sent" | "received") => (crossed ?? []).reduce((all, one) => all + one[field], 0);
  const [from_parts, to_parts] = [sum("received"), sum("sent")];
  const missing = sent + duplicated + from_parts - received - dropped - impaired - (link_down ?? 0) - to_parts;
  return {
    ...{ sent, received, dropped, duplicated, impaired },
    ...(link_down !== undefined && { link_down }),
    ...(crossed && { from_parts, to_parts }),
    missing,
  };
}

/** Fields of a result about its scenario. */
export function runFacts(scenario: Scenario): Pick<
  Result,
  "seed" | "duration_s" | "warmup_s" | "profile" | "congestion_control" | "path_mtu"
> & {
  payload_share: number;
} {
  const { hosts, flows, congestion } = scenario;
  const tagging = new Set(hosts.filter((host) => sendsCnTags(congestion, host, flows[0]?.priority ?? 0)));
  const telemetry = hearsTelemetry(congestion.algorithm) ? kTelemetryBytes : 0;
  const payloadShare = ({ path_mtu }: HostConfig, tag: number) =>
    path_mtu / (path_mtu + kHeaderBytes + tag + telemetry + kEthernetOverhead);
  const pathMtus = [...new Set(scenario.hosts.map((host) => host.path_mtu))];
  const [first] = pathMtus;
  return {
    seed: scenario.seed,
    duration_s: scenario.duration / 1e9,
    warmup_s: scenario.warmup / 1e9,
    profile: profileText(scenario.congestion),
    congestion_control: scenario.congestion.algorithm,
    path_mtu: pathMtus.length === 1 && first !== undefined ? first : pathMtus,
    // Packets of the path MTU leave this part of a link's rate for payload, after headers, FCS, preamble and gap.
    payload_share: Math.min(...hosts.map((host) => payloadShare(host, tagging.has(host) ? kCnTagBytes : 0))),
  };
}

/**
 * Rates are `delivered` in `seconds`; no time gives no rate. A queue pair counts feedback of either algorithm as one.
 * @param underWay Data packets that are still in the network, of a run that ends before they have come.
 */
export function flowResult(
  flow: Flow,
  scenario: Pick<Scenario, "congestion" | "transport" | "part">,
  counters: { sender: Sums; receiver: Sums },
  delivered: { bytes: number; wireBytes: number },
  seconds: number,
  underWay?: number,
): FlowResult {
  const { sender, receiver } = counters;
  const cnms = hearsCnms(scenario.congestion.algorithm);
  const [packets, received] = [sender.sum("tx_packets"), receiver.sum("rx_packets")];
  const trimmed = receiver.sum("trimmed");
  return {
    id: flow.id,
    from: flow.from,
    to: flow.to,
    priority: flow.priority,
    goodput_bps: seconds > 0 ? (delivered.bytes * 8) / seconds : 0,
    wire_bps: seconds > 0 ? (delivered.wireBytes * 8) / seconds : 0,
    packets,
    received,
    ...(underWay !== undefined && { under_way: underWay }),
    lost: packetsLost(scenario, packets, receiver, underWay ?? 0),
    ...(trimmed > 0 && { trimmed }),
    ecn_marked: receiver.sum("ecn_marked"),
    cnp_sent: receiver.sum("cnp_sent"),
    cnp_handled: cnms ? 0 : sender.sum("cnp_handled"),
    ...(cnms && { cnm_handled: sender.sum("cnp_handled"), cnm_lowest: sender.sum("cnm_lowest") }),
  };
}

/**
 * What was sent and neither came nor is under way. A gap in the PSNs says less: at the end of a stream no packet shows it, and of a
 * connection that takes packets as they come it may be one that is late. Go-back-N takes none of those that come behind a gap, and
 * a part of a lab need not have both ends: there gaps are all that is known.
 */
function packetsLost(
  { transport, part }: Pick<Scenario, "transport" | "part">,
  packets: number,
  receiver: Sums,
  underWay: number,
) {
  if (transport.type === "stream") return Math.max(0, packets - receiver.sum("rx_packets") - underWay);
  const arrived = receiver.sum("arrived");
  const whole = part === undefined || (packets > 0 && arrived > 0);
  if (transport.recovery !== "selective-repeat" || !whole) return receiver.sum("lost");
  return Math.max(0, packets - arrived - underWay);
}

/** Lengths of one egress queue; `port` is the peer's name. */
type QueueLengths = Distribution & { port: string; priority: number };

/**
 * `queues` are those of this switch.
 * @param ports Counters of each port by the peer's name, of a switch that has congestion points.
 */
export function switchResult(
  counters: CounterView,
  queues: readonly QueueLengths[],
  ports?: Iterable<readonly [peer: string, counters: CounterView]>,
): SwitchResult {
  const lengths: SwitchResult["queues"] = {};
  for (const { port, priority, mean, p50, p95, p99, max } of queues) {
    lengths[port] = { ...lengths[port], [priority]: { mean, p50, p95, p99, max } };
  }
  const some = (name: string) => {
    const found = counters.byPriority(name);
    return Object.keys(found).length > 0 ? found : undefined;
  };
  const storms = some("pfc_wd_storm_detected");
  const [trimmed, dropped] = [some("trim_packets"), some("dropped_trim_packets")];
  return {
    drops: byReason(counters.of("drop")),
    ecn_marked: counters.of("mark").sum(),
    pfc_sent: counters.of("pause_tx").byPriority(),
    pfc_received: counters.of("pause_rx").byPriority(),
    pauses: counters.byPriority("pfc_tx_transitions"),
    ...(storms && { pfc_storms: storms }),
    ...(trimmed && { trimmed }),
    ...(dropped && { trimmed_dropped: dropped }),
    ...(ports && { cnm_sent: counters.of("cnm").sum(), congestion_points: congestionPoints(ports) }),
    queues: lengths,
    queue_cdf: wholeDistributions(queues),
  };
}

const byReason = (counters: CounterView) =>
  Object.fromEntries(Object.entries(counters.byName()).map(([name, count]) => [reasonOf(name), count]));

/** Distributions of each queue, by port and priority: [bytes, fraction of the time at or below them]. */
export function wholeDistributions(queues: readonly Pick<QueueLengths, "port" | "priority" | "cdf">[]) {
  const distributions: Record<string, Record<string, Distribution["cdf"]>> = {};
  for (const { port, priority, cdf } of queues) distributions[port] = { ...distributions[port], [priority]: cdf };
  return distributions;
}

function congestionPoints(
  ports: Iterable<readonly [peer: string, counters: CounterView]>,
): NonNullable<SwitchResult["congestion_points"]> {
  const found: NonNullable<SwitchResult["congestion_points"]> = {};
  for (const [peer, counters] of ports) {
    const names = ["transmitted_frames", "sampled_frames", "transmitted_cnms", "discarded_frames"];
    const [frames, sampled, cnms, discarded] = names.map((name) => counters.byPriority(`cn_cp_${name}`));
    for (const [priority, count] of Object.entries(frames ?? {})) {
      const own = {
        frames: count,
        sampled: sampled?.[priority] ?? 0,
        cnms: cnms?.[priority] ?? 0,
        discarded: discarded?.[priority] ?? 0,
      };
      found[peer] = { ...found[peer], [priority]: own };
    }
  }
  return found;
}

/** Feedback frames per second of a run of `seconds`. */
export function feedbackPerSecond(
  algorithm: Congestion["algorithm"],
  switches: CounterView,
  nics: Sums,
  seconds: number,
): number | undefined {
  if (seconds <= 0) return undefined;
  if (hearsCnms(algorithm)) return switches.of("cnm").sum() / seconds;
  return hearsCnps(algorithm) ? nics.sum("np_cnp_sent") / seconds : undefined;
}

/** @param scale Divides the counters' times. */
export function nicResult(counters: CounterView, algorithm: Congestion["algorithm"], scale: number): NicResult {
  const withheld = counters.sum("np_cnp_withheld");
  const limited = Object.entries(counters.byPriority("rp_port_pri_centiseconds"));
  return {
    np_cnp_sent: counters.sum("np_cnp_sent"),
    ...(withheld > 0 && { np_cnp_withheld: withheld }),
    ...(algorithm === "library" && { cc_refused_answers: counters.sum("cc_refused_answers") }),
    rp_cnp_handled: counters.sum("rp_cnp_handled"),
    pfc_received: counters.of("pause_rx").byPriority(),
    pfc_sent: counters.of("pause_tx").byPriority(),
    ...(hearsCnms(algorithm) && {
      rp_cnm_handled: counters.sum("rp_cnm_handled"),
      rp_cnm_refused: byReason(counters.of("cnm_refused")),
      rp_created: counters.byPriority("rp_port_pri_created_rps"),
      rp_limited_s: Object.fromEntries(limited.map(([priority, time]) => [priority, time / 100 / scale])),
    }),
  };
}
