/** Behaviour of native devices by their validated configuration, as far as labs and daemons have it in common. */

import type { NativeSetting } from "../congestion/algorithm.js";
import { nativeCongestion } from "../congestion/algorithms.js";
import type { NativeNic, NativeNicParameters, NativePort, NativeSwitchPort } from "../native/types.js";
import type { PortDefence } from "../scenario/cn_domain.js";
import { portThresholdsOf } from "../scenario/features/buffer.js";
import { redOf } from "../scenario/features/ecn.js";
import { type AllOf, mask } from "../scenario/features/feature.js";
import { kHostFeatures, kSwitchFeatures, kTrafficClasses } from "../scenario/features/list.js";
import { pointsOf } from "../scenario/features/qcn.js";
import type { Congestion, HostConfig, SwitchConfig, TrafficClasses } from "../scenario/types.js";

/** The number of a NIC's first queue pair; the others follow it. */
export const kFirstQpn = 0x11;
/** ECN codepoint of data that may be marked. */
export const kEct0 = 2;
/** Least wall time between two turns of a poll loop under load. */
export const kQuantumNs = 20_000;
/** Bytes of frames by which receive slots are counted, unless they are known to be smaller. */
const kSlotFrame = 1000;
/** Most slots that a packet socket's ring can be asked for. */
export const kMostSlots = 65_536;

/** The numbers of a switch's features. */
export function switchBehaviour(s: SwitchConfig, latenessHeadroom: number): AllOf<typeof kSwitchFeatures, "native"> {
  return collect(kSwitchFeatures, "native", s, { latenessHeadroom });
}

/** Settings of a switch, as its features tell them. */
export type SwitchSettings = AllOf<typeof kSwitchFeatures, "report">;
export const switchSettings = (s: SwitchConfig): SwitchSettings => collect(kSwitchFeatures, "report", s);

/** Settings in which a port differs from others: its defence, where there are congestion points, and its profile. */
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
      buffer: portThresholdsOf(profile.buffer),
      qcn: pointsOf(profile.qcn),
    }),
  };
}

/** The network of a NIC, and the keys of its random draws. */
export interface NicSetting extends Omit<NativeSetting, "qcn"> {
  /** Rate of the NIC's link, bit/s. */
  rate: number;
}

export function nicBehaviour(
  host: HostConfig,
  traffic: TrafficClasses,
  congestion: Congestion,
  { rate, ...setting }: NicSetting,
): Omit<NativeNicParameters, "mac" | "first_qpn"> & Pick<NativeNic, "arrears"> {
  return {
    rate,
    arrears: (host.burst * 8e9) / rate,
    congestion_control: congestion.algorithm,
    ...nativeCongestion(congestion, { ...setting, qcn: { ...host.qcn, priorities: mask(host.qcn.priorities) } }),
    line_rate_start: host.line_rate_start,
    initial_rate: host.initial_rate,
    ...(host.trimmed_dscp !== undefined && { trimmed_dscp: host.trimmed_dscp }),
    ...collect(kHostFeatures, "native", host),
    ...collect(kTrafficClasses, "native", traffic, { latenessHeadroom: 0 }),
  };
}

/** Collects all that features make of one device. */
function collect<const Features extends readonly object[], What extends "native" | "report">(
  features: Features,
  what: What,
  ...given: readonly unknown[]
): AllOf<Features, What> {
  const all = features as unknown as readonly Partial<Record<What, (...given: readonly unknown[]) => object>>[];
  return Object.assign({}, ...all.map((feature) => feature[what]?.(...given))) as AllOf<Features, What>;
}

/**
 * Packet descriptors of a switch: as many as the buffer can hold of full frames, half as much again for small ones, and those that one
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
 * Slots for frames that come in `lateness` at the link's rate and a quarter more, and for those that the link itself holds: they wait
 * there until `delay` is over. Wall ns and bit/s; `frame`: bytes of the smallest common frame.
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
