// Checks of relations between fields, which one field alone cannot show. Problems stop the scenario, warnings accompany it.

import type { Problem } from "../base/error.js";
import type { Findings, Where } from "../base/findings.js";
import { formatRate, formatTime } from "../base/units.js";
import { hearsAcknowledgements, hearsCnms, hearsEcnEcho, hearsTelemetry } from "../congestion/flow_state.js";
import { checkCongestion } from "../congestion/section.js";
import { kCnTagBytes, kTelemetryBytes } from "../wire/frame_size.js";
import { checkHostFeatures, checkSwitch, checkUnshaped, fittingPathMtu } from "./check_device.js";
import { checkFailures } from "./check_failures.js";
import { checkFaults } from "./check_faults.js";
import { checkChanges, checkCnPorts, checkCongestionPoints, checkGroups, checkQcnNetwork } from "./check_qcn.js";
import { checkTopology } from "./check_topology.js";
import { checkPriorities, checkTraffic } from "./check_traffic.js";
import { checkAutomatic, switchesWithPorts, warnOfHeadroom } from "./port_headroom.js";
import { checkPortProfiles } from "./port_profiles.js";
import { slowestHostRate } from "./resolve.js";
import type { ScenarioInput } from "./schema.js";
import { writtenOut } from "./topologies.js";
import type { Graph } from "./topology.js";
import { checkTransport, kInOrder } from "./transport.js";
import type { HostConfig, Link, Scenario } from "./types.js";

const kMostSamples = 1_000_000;
const kMostWarnings = 20;

/** `graph` is that of the scenario's network; `found` may hold findings already. */
export function checkScenario(
  scenario: Scenario,
  input: ScenarioInput,
  graph: Graph,
  found: Findings,
): { problems: Problem[]; warnings: string[] } {
  const sound = checkTopology(scenario, graph, found);
  checkOverrides(scenario, input, found);
  checkTimes(scenario, found);
  checkTransport(scenario, found);
  checkFeedback(scenario, found);
  checkLoadBalancing(scenario, found);
  checkTrimNaks(scenario, found);
  const at = originsIn(input);
  const devices = [...scenario.hosts, ...scenario.switches].map(({ name }) => name);
  const ported = switchesWithPorts(scenario, graph.ports);
  warnOfHeadroom(ported, "`switch.buffer.headroom: auto` is as much as each link needs", found);
  for (const [s, own] of ported) {
    const where = (...field: string[]) => at("switch", s.name, field);
    const peers = own.map(({ name }) => name);
    checkSwitch(s, own, where, found);
    checkAutomatic(s, own, where, found);
    checkCongestionPoints(s, peers, where, found);
    const known = (path: Problem["path"]) => (path[0] === "topology" ? peers : devices);
    checkPortProfiles(s.port_profiles, own, known, where, found);
    checkCnPorts(s, known, where, found);
    checkUnshaped(s, own, found);
  }
  const narrowest = scenario.links.reduce((least, link) => (link.mtu < least.mtu ? link : least));
  const { algorithm } = scenario.congestion;
  const qcn = hearsCnms(algorithm);
  const telemetry = hearsTelemetry(algorithm) ? kTelemetryBytes : 0;
  for (const host of scenario.hosts) {
    const where = (...field: string[]) => at("host", host.name, field);
    const more = telemetry + (qcn && host.qcn.cn_tag ? kCnTagBytes : 0);
    const rate = graph.hostLink(host.name)?.rate ?? 0;
    checkHost(host, { narrowest, more }, rate, where, found);
    if (qcn) checkGroups(host, rate, where, found);
  }
  checkTraffic(scenario, input, found);
  checkProbes(scenario, graph, found);
  if (sound) {
    checkPriorities(scenario, graph, found);
    checkCongestion(scenario.congestion, slowestHostRate(scenario.hosts, graph), found);
    if (qcn) checkQcnNetwork(scenario, graph, found);
    checkChanges(scenario, graph, found);
    checkFailures(scenario, found);
    checkFaults(scenario, found);
  }
  return { problems: found.problems, warnings: shortened(found.warnings) };
}

/** Shortens the list: devices that are alike have warnings that are alike. */
function shortened(warnings: string[]): string[] {
  if (warnings.length <= kMostWarnings) return warnings;
  return [...warnings.slice(0, kMostWarnings - 1), `and ${warnings.length - kMostWarnings + 1} more warnings`];
}

/** Finds overrides of devices that the topology does not make. */
function checkOverrides({ hosts, switches }: Scenario, { topology }: ScenarioInput, found: Findings): void {
  if (!("host_overrides" in topology || "switch_overrides" in topology)) return;
  for (const [field, kind, devices] of [
    ["host_overrides", "host", hosts],
    ["switch_overrides", "switch", switches],
  ] as const) {
    const names = devices.map(({ name }) => name);
    const known = new Set(names);
    for (const name of Object.keys(topology[field] ?? {})) {
      if (!known.has(name)) found.unknown(["topology", field, name], kind, name, names);
    }
  }
}

function checkTimes({ duration, warmup, scale, probes }: Scenario, found: Findings): void {
  if (warmup >= duration) {
    const message = `${formatTime(warmup)} leaves nothing of the duration ${formatTime(duration)}`;
    found.problem(["warmup"], message, "warmup must be less than duration");
  }
  if (scale !== "auto" && duration * scale > Number.MAX_SAFE_INTEGER) {
    const message = `${scale} times ${formatTime(duration)} is more wall time than a run can have`;
    found.problem(["scale"], message, `at most ${Math.floor(Number.MAX_SAFE_INTEGER / duration)} for this duration`);
  }
  if (duration / probes.interval > kMostSamples) {
    const least = formatTime(Math.ceil(duration / kMostSamples));
    const message = `${formatTime(probes.interval)} gives ${Math.ceil(duration / probes.interval)} samples`;
    found.problem(["probes", "interval"], message, `must be at least ${least} for this duration`);
  }
}

/** Checks algorithms that run on acknowledgements. */
function checkFeedback({ congestion: { algorithm }, transport, switches }: Scenario, found: Findings): void {
  if (hearsAcknowledgements(algorithm) && transport.type !== "rc") {
    const message = `${algorithm} needs acknowledgements, which transport.type ${transport.type} does not have`;
    found.problem(["congestion", "algorithm"], message, "use transport.type: rc, or algorithm: dcqcn");
  }
  if (hearsEcnEcho(algorithm) && !switches.some(({ ecn }) => ecn.enabled)) {
    found.warn(
      `congestion.algorithm is ${algorithm}, but no switch marks (switch.ecn.enabled: true): only losses slow senders`,
    );
  }
}

/** Warns of flows over several paths: their packets are reordered, and not every transport can tell that from loss. */
function checkLoadBalancing({ switches, transport }: Scenario, found: Findings): void {
  const { type, recovery, reordering } = transport;
  for (const how of ["spray", "adaptive"] as const) {
    if (!switches.some(({ load_balancing }) => load_balancing === how)) continue;
    const reorders = `load_balancing: ${how} reorders packets, and`;
    const remedy = "use transport: { type: rc, recovery: selective-repeat, reordering: 250 }";
    if (type !== "rc") {
      found.warn(`${reorders} transport.type ${type} counts what comes late as lost: ${remedy}`);
    } else if (recovery !== "selective-repeat") {
      found.warn(`${reorders} ${recovery} sends everything again from the first that is late: ${remedy}`);
    } else if (reordering <= kInOrder) {
      found.warn(`${reorders} one that ${reordering} have overtaken counts as lost: use transport.reordering: 250`);
    }
  }
}

function checkTrimNaks({ hosts, transport }: Scenario, found: Findings): void {
  const { trim_naks, type } = transport;
  if (!trim_naks) return;
  if (type !== "rc") {
    found.warn(`transport.trim_naks is of reliable connections: with transport.type ${type} nothing is sent again`);
  } else if (hosts.every(({ trimmed_dscp }) => trimmed_dscp === undefined)) {
    found.warn(
      "transport.trim_naks asks for what switches have trimmed, and none does (switch.trimming.enabled: true)",
    );
  }
}

type Section = Record<string, unknown> | null | undefined;

/** Finds the place where a device's field was written: with the device, or in the section of defaults. */
function originsIn(input: ScenarioInput) {
  const { topology } = input;
  const made = topology.kind !== undefined && topology.kind !== "graph";
  const written = writtenOut(topology);
  const lists = { switch: new Map(written.switches), host: new Map(written.hosts) };
  const sections = made
    ? { switch: "switch_overrides", host: "host_overrides" }
    : { switch: "switches", host: "hosts" };
  return (kind: "switch" | "host", name: string, field: string[]): string[] => {
    let at: unknown = lists[kind].get(name);
    for (const key of field) at = (at as Section)?.[key];
    return at === undefined || at === null ? [kind, ...field] : ["topology", sections[kind], name, ...field];
  };
}

function checkHost(
  host: HostConfig,
  { narrowest, more }: { narrowest: Link; more: number },
  rate: number,
  at: Where,
  found: Findings,
): void {
  const narrow = fittingPathMtu(host.path_mtu, narrowest.mtu, more);
  if (narrow !== undefined) {
    const message = `${host.path_mtu} needs an MTU of ${narrow.needed}, but the link ${narrowest.from} -- ${narrowest.to} has ${narrowest.mtu}`;
    found.problem(at("path_mtu"), message, `use path_mtu: ${narrow.fits}, or topology.link.mtu: ${narrow.needed}`);
  }
  if (rate > 0 && host.initial_rate > rate) {
    const message = `${formatRate(host.initial_rate)} is more than the line rate ${formatRate(rate)} of host ${host.name}`;
    found.problem(at("initial_rate"), message, "must be at most the rate of the host's link");
  }
  checkHostFeatures(host, at, found);
}

function checkProbes(scenario: Scenario, { ports }: Graph, found: Findings): void {
  scenario.probes.queues.forEach((probe, i) => {
    const path = ["probes", "queues", i];
    const peers = ports.get(probe.switch)?.map((port) => port.peer);
    if (peers === undefined) found.unknown(path, "switch", probe.switch, [...ports.keys()]);
    else if (!peers.includes(probe.port)) {
      found.unknown(path, `port of switch ${probe.switch}:`, probe.port, peers);
    }
  });
}
