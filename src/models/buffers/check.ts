/**
 * Checks whether a scenario is lossless, and whether ECN acts before PFC: `weir plan check`.
 *
 * Lossless. A switch of native/switching/shared_buffer.h admits every lossless frame while the headroom of its ingress has room,
 * and pauses the peer with the first byte there. So no frame is lost if for each link that leads to a switch
 *
 *   t_flight >= trigger frame + local frame + PFC frame + 2 x delay x rate + response x rate + peer frame     (headroom.ts)
 *
 * and the peer obeys PFC at the priorities in question. The link's delay is taken to be from MAC to MAC, interfaces included.
 * Weir's own devices obey at once (response 0); hardware may take as long as the standard allows, which is the default. A host
 * that takes data more slowly than its link brings it needs the same room between xoff and the end of its receive buffer.
 *
 * ECN before PFC, for what the traffic does: for each port pair and priority that flows use, an ingress whose frames wait in e
 * egress queues, of q in use at the switch, all just below Kmin, must be below t_PFC (scenario/thresholds.ts). The buffer of
 * lossy traffic is not counted, nor how likely a mark is just above Kmin. The worst case of the paper, any traffic on all
 * priorities of all ports, is given for each switch beside it; by what the switch has, whatever profiles its ports have.
 *
 * Free of deadlock, if no pauses can wait for each other in a circle (cycles.ts): for what the traffic does, or without any for
 * all that hosts may send each other.
 */

import { formatRate, formatSize, formatTime } from "../../base/units.js";
import { hearsCnps, hearsEcnEcho } from "../../congestion/flow_state.js";
import { linksAvoidedInTurn } from "../../scenario/failures.js";
import { headroomFor } from "../../scenario/headroom.js";
import { settingsOf } from "../../scenario/port_profiles.js";
import {
  ecnThresholdBound,
  pfcThreshold,
  pfcThresholdAlone,
  type QueuesInUse,
  sharedBytes,
} from "../../scenario/thresholds.js";
import { switchPorts } from "../../scenario/topology.js";
import type { HostConfig, Link, Scenario, SwitchConfig } from "../../scenario/types.js";
import { type BufferCycle, bufferCycles } from "./cycles.js";
import { type PortPair, portPairs, routedPairs } from "./pairs.js";

/**
 * `loss`: frames can be lost. `order`: PFC can act before ECN marks, and congestion control goes by marks. `deadlock`: pauses can
 * wait for each other. `note`: worth knowing.
 */
export type FindingKind = "loss" | "order" | "deadlock" | "note";

export interface PlanFinding {
  kind: FindingKind;
  device: string;
  message: string;
}

export interface CheckedSwitch {
  switch: string;
  ports: number;
  shared_bytes: number;
  /** t_PFC of the empty buffer. */
  t_pfc_bytes: number;
  /** t_PFC for one ingress that is alone. */
  t_pfc_alone_bytes: number;
  kmin_bytes: number;
  /** Bound of Kmin for any traffic. */
  t_ecn_bytes: number;
  ecn_before_pfc: boolean;
}

export interface CheckedLink {
  device: string;
  peer: string;
  rate_bps: number;
  delay_ns: number;
  /** Room after the pause: headroom of a switch, the end of a receive buffer. */
  headroom_bytes: number;
  needed_bytes: number;
  enough: boolean;
}

export interface CheckedPair {
  switch: string;
  ingress: string;
  egress: string;
  priority: number;
  /** e: egress queues that this ingress and priority use. */
  egress_queues: number;
  /** q: egress queues that all use. */
  switch_queues: number;
  t_ecn_bytes: number;
  ecn_before_pfc: boolean;
}

export interface PlanCheck {
  scenario: string;
  /** Time that peers take to obey, ns; null: as long as the standard allows. */
  response_ns: number | null;
  /** null, here and below: there was nothing to judge, and a note says what is missing. */
  lossless: boolean | null;
  /** Verdict for the traffic of the scenario. */
  ecn_before_pfc: boolean | null;
  /** Whether its congestion control takes marks: without, `ecn_before_pfc` is no condition. */
  ecn_heard: boolean;
  /** True if pauses cannot wait for each other. */
  deadlock_free: boolean | null;
  /** Circles in which they can. */
  cycles: PlanCycle[];
  switches: CheckedSwitch[];
  links: CheckedLink[];
  pairs: CheckedPair[];
  findings: PlanFinding[];
}

export interface CheckOptions {
  /** Time that peers take to obey, ns; undefined: as long as the standard allows. */
  response?: number | undefined;
}

/** A circle; `without` has links that routes go around then, by the scenario's failures; undefined: none. */
export type PlanCycle = BufferCycle & { without?: string[] };

interface Port {
  peer: string;
  link: Link;
}

type Tell = (kind: FindingKind, device: string, message: string) => void;

export function checkPlan(scenario: Scenario, { response }: CheckOptions = {}): PlanCheck {
  const findings: PlanFinding[] = [];
  const tell: Tell = (kind, device, message) => void findings.push({ kind, device, message });
  const ports = switchPorts(scenario);
  const devices = new Map(scenario.switches.map((s) => [s.name, s]));
  const portsOf = (s: SwitchConfig): Port[] => ports.get(s.name) ?? [];
  const switches = scenario.switches.map((s) => checkedSwitch(s, portsOf(s).length));
  const lossless = scenario.switches.filter((s) => s.pfc.enabled && s.pfc.priorities.length > 0);
  const links = lossless.flatMap((s) =>
    rated(portsOf(s)).map((port) => checkedLink(s.name, port, settingsOf(s, port.peer).buffer.headroom, response)),
  );
  links.push(...scenario.hosts.flatMap((host) => hostLinks(host, scenario, lossless, portsOf, response)));
  tellTooSmall(links, tell);
  const all = portPairs(scenario);
  tellLossy(all, devices, tell);
  for (const s of lossless) {
    tellThresholds(s, portsOf(s).length, tell);
    tellDeafPeers(s, portsOf(s), devices, tell);
    const unrated = portsOf(s).filter(({ link }) => link.rate === 0);
    if (unrated.length > 0) {
      tell("note", s.name, `not checked: links without a rate, to ${unrated.map(({ peer }) => peer).join(", ")}`);
    }
  }
  const pairs = checkedPairs(all, devices, (s) => portsOf(s).length);
  const { algorithm } = scenario.congestion;
  const ecn_heard = hearsCnps(algorithm) || hearsEcnEcho(algorithm);
  tellOrder(pairs, switches, devices, ecn_heard ? tell : (_, ...told) => tell("note", ...told));
  const cycles = cyclesOf(scenario, all, devices);
  for (const cycle of cycles) tellCycle(cycle, devices, tell);
  // A verdict over nothing is null.
  const verdict = (bad: boolean, judged: number) => (bad ? false : judged > 0 ? true : null);
  const found = (kind: FindingKind) => findings.some((finding) => finding.kind === kind);
  const waiting = all.filter(isLossless(devices)).length;
  const verdicts = {
    lossless: verdict(found("loss"), links.length),
    ecn_before_pfc: verdict(
      pairs.some((pair) => !pair.ecn_before_pfc),
      pairs.length,
    ),
    ecn_heard,
    deadlock_free: verdict(cycles.length > 0, waiting),
  };
  if (lossless.length === 0) tell("note", scenario.name, "nothing to judge: no priority of any switch is lossless");
  else if (pairs.length === 0) tell("note", scenario.name, "nothing to judge of ECN: no lossless traffic is marked");
  if (!ecn_heard && lossless.length > 0) {
    tell(
      "note",
      scenario.name,
      `congestion control ${algorithm} takes no marks: that ECN comes before PFC is no condition`,
    );
  }
  if (lossless.length > 0 && waiting === 0)
    tell("note", scenario.name, "nothing to judge of deadlocks: no traffic is lossless");
  return {
    scenario: scenario.name,
    response_ns: response ?? null,
    ...verdicts,
    cycles,
    switches,
    links,
    pairs,
    findings,
  };
}

/** Lossless traffic alone waits for a pause. */
const isLossless =
  (devices: ReadonlyMap<string, SwitchConfig>) =>
  ({ switch: name, priority }: PortPair) => {
    const pfc = devices.get(name)?.pfc;
    return pfc?.enabled === true && pfc.priorities.includes(priority);
  };

function checkedSwitch({ name, buffer, ecn }: SwitchConfig, ports: number): CheckedSwitch {
  const bound = ecnThresholdBound(buffer, ports);
  return {
    switch: name,
    ports,
    shared_bytes: sharedBytes(buffer, ports),
    t_pfc_bytes: pfcThreshold(buffer, ports, 0),
    t_pfc_alone_bytes: pfcThresholdAlone(buffer, ports),
    kmin_bytes: ecn.kmin,
    t_ecn_bytes: Math.floor(bound),
    ecn_before_pfc: ecn.kmin < bound,
  };
}

/** Links that have a rate: without one the bytes that come after a pause have no bound to check. */
const rated = (ports: readonly Port[]) => ports.filter(({ link }) => link.rate > 0);

function checkedLink(device: string, { peer, link }: Port, headroom: number, response?: number): CheckedLink {
  const { rate, delay, mtu } = link;
  const { bytes } = headroomFor({ rate, delay, mtu, response, interfaceDelay: 0, trigger: true });
  return {
    device,
    peer,
    rate_bps: rate,
    delay_ns: delay,
    headroom_bytes: headroom,
    needed_bytes: bytes,
    enough: headroom >= bytes,
  };
}

/** Links of a host that is slower than its link, and whose switch obeys pauses. Each priority may fill its receive buffer to xoff. */
function hostLinks(
  { name, receive_buffer: { size, rate, xoff } }: HostConfig,
  { flows }: Scenario,
  lossless: readonly SwitchConfig[],
  portsOf: (s: SwitchConfig) => Port[],
  response?: number,
): CheckedLink[] {
  return lossless.flatMap((s) => {
    const link = rated(portsOf(s)).find(({ peer }) => peer === name)?.link;
    if (link === undefined || rate === 0 || rate >= link.rate) return [];
    const used = new Set(flows.filter(({ to }) => to === name).map(({ priority }) => priority));
    const filled = s.pfc.priorities.filter((priority) => used.has(priority)).length;
    return [checkedLink(name, { peer: s.name, link }, Math.max(0, size - Math.max(1, filled) * xoff), response)];
  });
}

/** Tells one finding for the links of a device that are alike. */
function tellTooSmall(links: readonly CheckedLink[], tell: Tell): void {
  const alike = new Map<string, CheckedLink[]>();
  for (const link of links) {
    if (link.enough) continue;
    const key = `${link.device} ${link.rate_bps} ${link.delay_ns} ${link.needed_bytes} ${link.headroom_bytes}`;
    const others = alike.get(key);
    if (others === undefined) alike.set(key, [link]);
    else others.push(link);
  }
  for (const [first, ...others] of alike.values()) {
    if (first === undefined) continue;
    const more = others.length === 0 ? "" : ` and from ${others.length} others alike`;
    const link = `${first.peer} (${formatRate(first.rate_bps)}, ${formatTime(first.delay_ns)})`;
    const there = formatSize(first.headroom_bytes);
    const needed = formatSize(first.needed_bytes);
    tell("loss", first.device, `${there} is less than the ${needed} that may come from ${link} after a pause${more}`);
  }
}

/** Tells of traffic at priorities that are not lossless where it passes. */
function tellLossy(pairs: ReturnType<typeof portPairs>, devices: ReadonlyMap<string, SwitchConfig>, tell: Tell): void {
  const told = new Set<string>();
  for (const { switch: name, priority } of pairs) {
    const pfc = devices.get(name)?.pfc;
    if (pfc === undefined || (pfc.enabled && pfc.priorities.includes(priority)) || told.has(`${name} ${priority}`)) {
      continue;
    }
    told.add(`${name} ${priority}`);
    const why = pfc.enabled ? `pfc.priorities: ${pfc.priorities.join(", ")}` : "PFC is off";
    tell("loss", name, `traffic of priority ${priority} is not lossless (${why})`);
  }
}

/** Tells of thresholds that do not have the effect that they are for. */
function tellThresholds({ name, buffer }: SwitchConfig, ports: number, tell: Tell): void {
  const shared = sharedBytes(buffer, ports);
  if (buffer.mode === "static" && buffer.threshold >= shared) {
    const threshold = formatSize(buffer.threshold);
    tell(
      "loss",
      name,
      `xoff is never reached: the threshold ${threshold} is not below the ${formatSize(shared)} that all share`,
    );
  }
}

/** Tells of switches that send on although this one has paused them. */
function tellDeafPeers(
  s: SwitchConfig,
  ports: readonly Port[],
  devices: ReadonlyMap<string, SwitchConfig>,
  tell: Tell,
): void {
  for (const { peer } of ports) {
    const pfc = devices.get(peer)?.pfc;
    if (pfc === undefined) continue;
    const deaf = s.pfc.priorities.filter((priority) => !pfc.enabled || !pfc.priorities.includes(priority));
    if (deaf.length > 0) tell("loss", s.name, `switch ${peer} does not obey pauses of priority ${deaf.join(", ")}`);
  }
}

function checkedPairs(
  all: ReturnType<typeof portPairs>,
  devices: ReadonlyMap<string, SwitchConfig>,
  portsOf: (s: SwitchConfig) => number,
): CheckedPair[] {
  const both = all.flatMap((pair) => {
    const s = devices.get(pair.switch);
    const marked = s?.ecn.enabled === true && s.ecn.priorities.includes(pair.priority);
    const paused = s?.pfc.enabled === true && s.pfc.priorities.includes(pair.priority);
    return s !== undefined && marked && paused ? [{ pair, s }] : [];
  });
  const ofIngress = new Map<string, Set<string>>();
  const ofSwitch = new Map<string, Set<string>>();
  const ingressKey = (pair: (typeof all)[number]) => `${pair.switch} ${pair.ingress} ${pair.priority}`;
  for (const { pair } of both) {
    collect(ofIngress, ingressKey(pair), pair.egress);
    collect(ofSwitch, pair.switch, queueKey(pair));
  }
  return both.map(({ pair, s }) => {
    const fed = [...(ofIngress.get(ingressKey(pair)) ?? [pair.egress])];
    const used = [...(ofSwitch.get(pair.switch) ?? [queueKey(pair)])];
    const kmin = kminOf(s, pair.egress);
    const bound = pairBound(s, portsOf(s), {
      ...pair,
      kmin,
      ofIngress: sum(fed.map((egress) => kminOf(s, egress))),
      ofSwitch: sum(used.map((queue) => kminOf(s, queue.split(" ")[0] ?? ""))),
      queues: { ofIngress: fed.length, ofSwitch: used.length },
    });
    return {
      ...pair,
      egress_queues: fed.length,
      switch_queues: used.length,
      t_ecn_bytes: Math.floor(bound),
      ecn_before_pfc: kmin < bound,
    };
  });
}

const sum = (bytes: readonly number[]) => bytes.reduce((total, one) => total + one, 0);
const queueKey = ({ egress, priority }: Pick<PortPair, "egress" | "priority">) => `${egress} ${priority}`;
const kminOf = (s: SwitchConfig, egress: string) => settingsOf(s, egress).ecn.kmin;

/** A pair whose Kmin has a bound; `ofIngress` and `ofSwitch` are sums of Kmin over the queues in use. */
interface BoundedPair extends PortPair {
  kmin: number;
  ofIngress: number;
  ofSwitch: number;
  queues: QueuesInUse;
}

/**
 * Bound of a pair's Kmin. Where all ports have one Kmin, it is ecnThresholdBound(). Else all thresholds of marking together have
 * to be below t_PFC of the ingress: the sum over its e queues < beta (F - the sum over q queues) / P; the bound is the pair's own
 * part while they keep their proportions.
 */
function pairBound(
  s: SwitchConfig,
  ports: number,
  { ingress, kmin, ofIngress, ofSwitch, queues }: BoundedPair,
): number {
  const { beta, threshold } = settingsOf(s, ingress).buffer;
  const buffer = { ...s.buffer, beta, threshold };
  const alike = ofIngress === kmin * queues.ofIngress && ofSwitch === kmin * queues.ofSwitch;
  if (alike || kmin === 0) return ecnThresholdBound(buffer, ports, queues);
  if (buffer.mode === "static") return (threshold * kmin) / ofIngress;
  const { priorities } = buffer;
  return (beta * sharedBytes(buffer, ports) * kmin) / (priorities * ofIngress + beta * ofSwitch);
}

/** Circles of the network as it is come first, then those that its failures add. */
function cyclesOf(
  scenario: Scenario,
  all: ReturnType<typeof portPairs>,
  devices: ReadonlyMap<string, SwitchConfig>,
): PlanCycle[] {
  const pairsOf = scenario.flows.length === 0 ? routedPairs : portPairs;
  const told = new Set<string>();
  return linksAvoidedInTurn(scenario).flatMap((down): PlanCycle[] => {
    const pairs = down.size === 0 && pairsOf === portPairs ? all : pairsOf(scenario, down);
    return bufferCycles(pairs, devices).flatMap((cycle) => {
      const key = `${cycle.priority} ${[...cycle.switches].sort().join(" ")}`;
      if (told.has(key)) return [];
      told.add(key);
      return down.size === 0 ? [cycle] : [{ ...cycle, without: [...down].map(({ from, to }) => `${from} -- ${to}`) }];
    });
  });
}

function tellCycle(
  { priority, switches, without }: PlanCycle,
  devices: ReadonlyMap<string, SwitchConfig>,
  tell: Tell,
): void {
  const [first = ""] = switches;
  const circle = [...switches, first].join(" -> ");
  const watched = switches.some((name) => devices.get(name)?.pfc_watchdog.enabled);
  const remedy = watched
    ? "the PFC watchdog there can end a deadlock"
    : "pfc_watchdog ends a deadlock, other routes avoid it";
  const failed = without === undefined ? "" : ` without ${without.join(", ")}`;
  const pauses = devices.get(first)?.pfc.by === "pause" ? "PAUSE frames" : `pauses of priority ${priority}`;
  tell("deadlock", first, `${pauses} can wait for each other${failed}: ${circle} (${remedy})`);
}

function collect(sets: Map<string, Set<string>>, key: string, member: string): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([member]));
  else set.add(member);
}

function tellOrder(
  pairs: readonly CheckedPair[],
  switches: readonly CheckedSwitch[],
  devices: ReadonlyMap<string, SwitchConfig>,
  tell: Tell,
): void {
  for (const { switch: name, ingress, egress, priority, t_ecn_bytes, ecn_before_pfc } of pairs) {
    if (ecn_before_pfc) continue;
    const s = devices.get(name);
    const kmin = formatSize(s === undefined ? 0 : kminOf(s, egress));
    const message = `${ingress} -> ${egress}, priority ${priority}: kmin ${kmin} is not below ${formatSize(t_ecn_bytes)}`;
    tell("order", name, `${message}: the ingress may be paused before anything is marked`);
  }
  for (const { switch: name, kmin_bytes, t_ecn_bytes, ecn_before_pfc } of switches) {
    const s = devices.get(name);
    if (s === undefined || !s.pfc.enabled) continue;
    const unmarked = s.pfc.priorities.filter((priority) => !s.ecn.enabled || !s.ecn.priorities.includes(priority));
    if (unmarked.length > 0) tell("note", name, `priority ${unmarked.join(", ")} is lossless, but never marked`);
    if (unmarked.length < s.pfc.priorities.length && !ecn_before_pfc) {
      const bound = formatSize(t_ecn_bytes);
      tell("note", name, `with other traffic PFC may come first: kmin ${formatSize(kmin_bytes)} is not below ${bound}`);
    }
  }
}
