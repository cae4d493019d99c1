/** From validated configuration to how native devices behave: what labs and daemons have in common. */

import type { NativeSetting } from "../congestion/algorithm.js";
import { nativeCongestion } from "../congestion/algorithms.js";
import type {
  NativeNic,
  NativeNicParameters,
  NativePort,
  NativeSwitchParameters,
  NativeSwitchPort,
} from "../native/types.js";
import type { PortDefence } from "../scenario/cn_domain.js";
import type { PortProfile } from "../scenario/port_profiles.js";
import type { Congestion, HostConfig, SwitchConfig, TrafficClasses } from "../scenario/types.js";

/** The number of a NIC's first queue pair; the others follow it. */
export const kFirstQpn = 0x11;
/** ECN codepoint of data that may be marked. */
export const kEct0 = 2;
/** Least wall time between two turns of a poll loop under load. */
export const kQuantumNs = 20_000;
/** Bytes of frames by which receive slots are counted, unless they are known to be smaller. */
const kSlotFrame = 1000;
/** What a packet socket's ring can be asked for. */
export const kMostSlots = 65_536;

/** Buffer, marking, pausing and scheduling: bytes stay as they are at every scale, times do not. */
export function switchBehaviour(
  s: TrafficClasses & Pick<SwitchConfig, "buffer" | "ecn" | "qcn" | "pfc_watchdog" | "trimming">,
  latenessHeadroom: number,
  scale = 1,
): Omit<NativeSwitchParameters, "ports" | "learning" | "ageing" | "seed" | "hash_seed" | "component"> {
  return {
    buffer: {
      total: s.buffer.total,
      headroom: s.buffer.headroom,
      priorities: s.buffer.priorities,
      beta: s.buffer.beta,
      threshold: s.buffer.mode,
      fixed_threshold: s.buffer.threshold,
      xon_offset: s.buffer.xon_offset,
      lossy_alpha: s.buffer.lossy_alpha,
      lateness_headroom: latenessHeadroom,
    },
    ecn_priorities: s.ecn.enabled ? mask(s.ecn.priorities) : 0,
    mark_on_dequeue: s.ecn.mark === "dequeue",
    red: redOf(s.ecn, s.ecn),
    ...(s.qcn.enabled && {
      cn_priorities: mask(s.qcn.priorities),
      cnm_priority: s.qcn.cnm_priority,
      cp_min_header_octets: s.qcn.cpMinHeaderOctets,
      ...(s.qcn.notification === "ip" && { cnms_by_ip: true }),
      qcn: pointsOf(s.qcn),
    }),
    ...(s.pfc_watchdog.enabled && {
      pfc_watchdog: {
        detection_time: Math.round(s.pfc_watchdog.detection_time * scale),
        restoration_time: Math.round(s.pfc_watchdog.restoration_time * scale),
        action: s.pfc_watchdog.action,
      },
    }),
    ...(s.trimming.enabled && {
      trimming: {
        priorities: mask(s.trimming.priorities),
        size: s.trimming.size,
        dscp: s.trimming.dscp,
        queue: s.trimming.queue,
        ...(s.trimming.buffer !== undefined && { buffer: s.trimming.buffer }),
      },
    }),
    ...classes(s),
  };
}

/** What is otherwise at a port than at others: its defence, where there are congestion points, and its profile. */
export function portBehaviour(
  s: Pick<SwitchConfig, "ecn" | "qcn" | "profiled">,
  port: string,
  { defence, alternate }: PortDefence,
): Pick<NativeSwitchPort, "cn_defence" | "cn_alternate_priority" | "red" | "buffer" | "qcn"> {
  const profile = s.profiled.get(port);
  return {
    ...(s.qcn.enabled && { cn_defence: defence, cn_alternate_priority: alternate }),
    ...(profile && {
      red: redOf(s.ecn, profile.ecn),
      buffer: {
        headroom: profile.buffer.headroom,
        beta: profile.buffer.beta,
        fixed_threshold: profile.buffer.threshold,
        xon_offset: profile.buffer.xon_offset,
        lossy_alpha: profile.buffer.lossy_alpha,
      },
      qcn: pointsOf(profile.qcn),
    }),
  };
}

const redOf = ({ queue, weight }: SwitchConfig["ecn"], { kmin, kmax, pmax }: PortProfile["ecn"]) => ({
  kmin,
  kmax,
  pmax,
  averaged: queue === "averaged",
  weight,
});

const pointsOf = ({ cpQSp, cpWeight, cpSampleBase }: PortProfile["qcn"]) => ({
  queue_set_point: cpQSp,
  weight: cpWeight,
  sample_base: cpSampleBase,
});

/** How a NIC's network is played. */
export interface NicSetting extends Omit<NativeSetting, "qcn"> {
  /** Of the NIC's link, bit/s on the wire. */
  rate: number;
}

export function nicBehaviour(
  host: HostConfig,
  traffic: TrafficClasses,
  congestion: Congestion,
  { rate, ...setting }: NicSetting,
): Omit<NativeNicParameters, "mac" | "first_qpn"> & Pick<NativeNic, "arrears"> {
  const { scale } = setting;
  return {
    rate,
    arrears: Math.round((host.burst * 8e9) / rate),
    congestion_control: congestion.algorithm,
    ...nativeCongestion(congestion, { ...setting, qcn: { ...host.qcn, priorities: mask(host.qcn.priorities) } }),
    ...(host.cnp.nic_interval > 0 && { cnp_nic_interval: Math.round(host.cnp.nic_interval * scale) }),
    cnp_dscp: host.cnp.dscp,
    cnp_priority: host.cnp.priority,
    ...(host.ack.priority !== undefined && { ack_dscp: host.ack.dscp, ack_priority: host.ack.priority }),
    line_rate_start: host.line_rate_start,
    initial_rate: Math.round(host.initial_rate / scale),
    receive_buffer: {
      size: host.receive_buffer.size,
      drain: host.receive_buffer.rate === 0 ? 0 : Math.max(1, Math.round(host.receive_buffer.rate / scale)),
      xoff: host.receive_buffer.xoff,
      xon: host.receive_buffer.xon,
    },
    ...(host.trimmed_dscp !== undefined && { trimmed_dscp: host.trimmed_dscp }),
    ...(host.pause_storm.priorities.length > 0 && { pause_storm: stormOf(host.pause_storm, scale) }),
    ...classes(traffic),
  };
}

const stormOf = ({ priorities, quanta, start, stop }: HostConfig["pause_storm"], scale: number) => ({
  priorities: mask(priorities),
  quanta,
  start: Math.round(start * scale),
  ...(stop !== undefined && { stop: Math.round(stop * scale) }),
});

/**
 * Packet descriptors of a switch: what the buffer can hold of full frames, half as much again for small ones, and what one
 * turn may have in passing. `frame`: bytes of a common frame.
 */
export function switchDescriptors(
  s: { buffer: { total: number; lateness_headroom: number }; pfc_priorities: number; ports: readonly NativePort[] },
  frame: number,
): number {
  const priorities = Math.max(1, s.pfc_priorities.toString(2).replaceAll("0", "").length);
  const memory = s.buffer.total + s.buffer.lateness_headroom * s.ports.length * priorities;
  return Math.ceil((1.5 * memory) / frame) + s.ports.reduce((sum, p) => sum + p.receive_slots, 0);
}

/**
 * Slots for what comes in `lateness` at the link's rate and a quarter more, and for what the link itself holds: frames wait there
 * until `delay` is over. Wall ns and bit/s; `frame`: bytes of the smallest common frame.
 */
export function receiveSlots(rate: number, lateness: number, { delay = 0, frame = kSlotFrame } = {}): number {
  const late = (rate / 8 / kSlotFrame) * (lateness / 1e9) * 1.25;
  const slots = Math.min(8192, Math.max(512, 2 ** Math.ceil(Math.log2(late))));
  return Math.min(kMostSlots, slots + Math.ceil((1.1 * rate * delay) / 8e9 / Math.min(frame, kSlotFrame)));
}

/** Entropy for next-hop groups, from the dynamic range as Linux's rxe does; Fibonacci hashing spreads neighbours. */
export function udpSourcePort(order: number): number {
  return 0xc000 | (Math.imul(order + 1, 0x9e3779b1) >>> 18);
}

function classes(
  s: TrafficClasses,
): Pick<NativeNicParameters, "pfc_priorities" | "link_pause" | "scheduler" | "priority_map"> {
  return {
    pfc_priorities: s.pfc.enabled ? mask(s.pfc.priorities) : 0,
    ...(s.pfc.by === "pause" && { link_pause: true }),
    scheduler: { strict: mask(s.scheduler.strict), weights: s.scheduler.weights },
    priority_map: {
      trust: s.trust === "port-default" ? "port" : s.trust,
      dscp: s.dscp_map,
      pcp: [0, 1, 2, 3, 4, 5, 6, 7],
      fallback: s.default_priority,
    },
  };
}

function mask(priorities: readonly number[]): number {
  return priorities.reduce((bits, p) => bits | (1 << p), 0);
}
