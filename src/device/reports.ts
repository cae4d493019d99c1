/** What a switch or a NIC tells of itself over a control socket, from its configuration and its native state. */

import { hasAlpha } from "../congestion/flow_state.js";
import type { CounterDescription, ForwardingEntry, QueuePairState, SwitchState } from "../native/types.js";
import type { Congestion, SwitchConfig, TrafficClasses } from "../scenario/types.js";
import type { SwitchDaemonPort } from "./file/types.js";
import type { CounterValue, FdbEntry, QosReport, QueuePairReport, SwitchReport } from "./protocol.js";

const kPriorities = 8;

const kNoStorms = { broadcast: 0, unknown_unicast: 0, multicast: 0 };

/** @param ports In the order of `state`; those of labs have no limits. */
export function switchReport(
  { name, pfc, ecn, qcn }: Pick<SwitchConfig, "name" | "pfc" | "ecn" | "qcn">,
  ports: readonly (Pick<SwitchDaemonPort, "name"> & Partial<SwitchDaemonPort>)[],
  state: SwitchState,
): SwitchReport {
  return {
    name,
    pfc_priorities: pfc.enabled ? pfc.priorities : [],
    ecn: { enabled: ecn.enabled, kmin: ecn.kmin, kmax: ecn.kmax, pmax: ecn.pmax, priorities: ecn.priorities },
    qcn: {
      enabled: qcn.enabled,
      priorities: qcn.priorities,
      cpQSp: qcn.cpQSp,
      cpWeight: qcn.cpWeight,
      cpSampleBase: qcn.cpSampleBase,
    },
    buffer: state.buffer,
    ports: state.ports.map((port, i) => ({
      name: ports[i]?.name ?? "",
      max_learned_addresses: ports[i]?.maxLearnedAddresses ?? 0,
      storm_control: ports[i]?.stormControl ?? kNoStorms,
      ...port,
    })),
  };
}

/** @param scale Wall time = time told * scale. */
export function forwardingReport(entries: readonly ForwardingEntry[], ports: readonly string[], scale = 1): FdbEntry[] {
  return entries.map((entry) => ({
    mac: macText(entry.mac),
    vlan: entry.vlan,
    ports: entry.ports.map((port) => ports[port] ?? String(port)),
    kind: entry.learned ? "learned" : "static",
    expires_in_s: entry.expires_in === undefined ? null : entry.expires_in / 1e9 / scale,
  }));
}

/** @param configs Of each pair, in their order. */
export function queuePairReport(
  pairs: readonly QueuePairState[],
  configs: readonly { peer: string; priority: number; unresolved?: boolean }[],
  { algorithm, scale = 1 }: { algorithm: Congestion["algorithm"]; scale?: number },
): QueuePairReport[] {
  return pairs.map((pair, i) => ({
    ...pair,
    state: configs[i]?.unresolved === true ? "unresolved" : pair.state,
    rate: pair.rate * scale,
    target_rate: pair.target_rate * scale,
    peer: configs[i]?.peer ?? "",
    priority: configs[i]?.priority ?? 0,
    alpha: hasAlpha(algorithm) ? pair.alpha : null,
  }));
}

/** @param headroom By priority. */
export function qosReport(
  { scheduler, trust, dscp_map, default_priority, pfc }: TrafficClasses,
  headroom: (priority: number) => number,
): QosReport {
  return {
    scheduler,
    trust,
    dscp_map,
    default_priority,
    pfc_priorities: pfc.enabled ? pfc.priorities : [],
    headroom: Array.from({ length: kPriorities }, (_, priority) => headroom(priority)),
  };
}

/** Of each lossless priority. */
export function switchQos(config: SwitchConfig): QosReport {
  const { pfc, buffer } = config;
  return qosReport(config, (p) => (pfc.enabled && pfc.priorities.includes(p) ? buffer.headroom : 0));
}

/** A NIC's receive buffer is that of all priorities. */
export function nicQos(classes: TrafficClasses, receiveBuffer: number): QosReport {
  return qosReport(classes, (p) => (p === 0 ? receiveBuffer : 0));
}

/** "02:57:45:00:00:01". */
export function macText(mac: number): string {
  return mac
    .toString(16)
    .padStart(12, "0")
    .replace(/..(?!$)/g, "$&:");
}

type Count = { description: CounterDescription; value: number };

/** Gauges among the counters: what they show is not a sum, so clearing does not touch them. */
const isGauge = (name: string) => name.endsWith("_watermark_bytes") || name === "rp_cur_flows";

/** Counters of one device since they were cleared; the same ones in the same order each time. */
export class ClearableCounters {
  cleared = new Date();
  private baseline: number[] = [];

  clear(totals: Iterable<Count>): void {
    this.baseline = Array.from(totals, ({ value }) => value);
    this.cleared = new Date();
  }

  since(totals: Iterable<Count>): CounterValue[] {
    return Array.from(totals, ({ description: { name, unit, labels }, value }, i) => ({
      name,
      unit,
      labels,
      value: value - (isGauge(name) ? 0 : (this.baseline[i] ?? 0)),
    }));
  }
}
