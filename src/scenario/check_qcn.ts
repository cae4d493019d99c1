// Checks that QCN is set up so that it can work: congestion points, the domain around them, reaction points, and changes of rates.

import type { Problem } from "../base/error.js";
import type { Findings, Where } from "../base/findings.js";
import { formatRate, formatSize, formatTime } from "../base/units.js";
import { checkRpg } from "../congestion/qcn.js";
import { markingLimit } from "./features/buffer_check.js";
import type { Graph } from "./topology.js";
import type { HostConfig, Scenario, SwitchConfig } from "./types.js";

const kMostCnpvs = 7;
/** Rate of NetFPGA's token bucket when it is full each time: 3 KB in 16 us. */
const kBucketRate = 1.5e9;
/** Octets that a CNM must return to tell queue pairs apart: EtherType 2, IPv4 20, UDP 8, BTH 12; up to the ports for five-tuples. */
const kHeaderOctets = { "queue-pair": 42, application: 42, "five-tuple": 26, "destination-mac": 0 } as const;

/** @param ports Names of the ports: those of the neighbours, or a daemon's own. */
export function checkCongestionPoints(
  s: SwitchConfig,
  ports: readonly string[],
  at: Where,
  found: Findings,
  routes = s.forwarding === "routed",
): void {
  const { qcn } = s;
  if (!qcn.enabled) return;
  const cnpvs = [...new Set(qcn.priorities)].sort();
  if (cnpvs.length === 0) {
    found.problem(
      at("qcn", "priorities"),
      "there is none, so no queue is a congestion point",
      "name 1 to 7 priorities",
    );
  } else if (cnpvs.length > kMostCnpvs) {
    const hint = `at most ${kMostCnpvs}: one at least stays for best effort`;
    found.problem(at("qcn", "priorities"), `all ${cnpvs.length} priorities are CNPVs`, hint);
  }
  const alternate = (path: string[], priority: number | undefined) => {
    if (priority === undefined || !cnpvs.includes(priority) || cnpvs.length > kMostCnpvs) return;
    const free = [0, 1, 2, 3, 4, 5, 6, 7].filter((p) => !cnpvs.includes(p));
    const message = `${priority} is a CNPV: frames from outside would get into the domain`;
    found.problem(at("qcn", ...path), message, `must be one of ${free.join(", ")}`);
  };
  alternate(["alternate_priority"], qcn.alternate_priority);
  for (const [port, own] of Object.entries(qcn.ports)) {
    alternate(["ports", port, "alternate_priority"], own.alternate_priority);
  }
  const best = cnpvs.filter((p) => p === 0 || p === s.default_priority);
  if (best.length > 0) {
    found.warn(
      `switch ${s.name}: CNPV ${best[0]} is the priority of best effort: frames without a mark get into the domain, and nobody can slow their sources`,
    );
  }
  if (cnpvs.includes(qcn.cnm_priority) && cnpvs.length <= kMostCnpvs) {
    const message = `${qcn.cnm_priority} is a CNPV: congestion would delay CNMs too`;
    found.problem(at("qcn", "cnm_priority"), message, "use another priority, a strict one");
  } else if (!s.scheduler.strict.includes(qcn.cnm_priority)) {
    found.warn(
      `switch ${s.name}: CNMs leave at priority ${qcn.cnm_priority}, which is not strict: other traffic delays them`,
    );
  }
  checkNotification(s, routes, at, found);
  checkSetPoint(s, ports.length, at, found);
}

/** A router's CNMs are packets of its own; a bridge has no address to send them from. */
function checkNotification({ name, qcn }: SwitchConfig, routes: boolean, at: Where, found: Findings): void {
  if (qcn.notification === "l2" && routes) {
    const message = `${name} routes: sources beyond its neighbours do not get CNMs that go by Ethernet addresses`;
    found.problem(at("qcn", "notification"), message, "set qcn.notification: ip, or qcn.enabled: false");
  }
  if (qcn.notification === "ip" && !routes) {
    const message = `${name} does not route: it has no address to send CNMs from`;
    found.problem(at("qcn", "notification"), message, "set qcn.notification: l2, or route");
  }
}

/** Q_eq must be reached before the buffer is full or PFC holds the frames back. */
function checkSetPoint(s: SwitchConfig, ports: number, at: Where, found: Findings): void {
  const { qcn, buffer, pfc } = s;
  if (qcn.cpQSp >= buffer.total) {
    const message = `${formatSize(qcn.cpQSp)} is not less than the buffer of ${formatSize(buffer.total)}`;
    found.problem(at("qcn", "cpQSp"), message, "must be less than buffer.total");
    return;
  }
  if (!pfc.enabled || !qcn.priorities.some((priority) => pfc.priorities.includes(priority))) return;
  const { limit, rule } = markingLimit(s, ports);
  if (qcn.cpQSp < limit) return;
  found.warn(
    `switch ${s.name}: cpQSp ${formatSize(qcn.cpQSp)} is not below ${rule} = ${formatSize(Math.max(0, Math.floor(limit)))}: ` +
      "PFC may act before any congestion is found",
  );
}

/** Finds ports that are named and do not exist. `known`: names that may be used where a field was written. */
export function checkCnPorts(
  { name: device, qcn }: SwitchConfig,
  known: (path: Problem["path"]) => readonly string[],
  at: Where,
  found: Findings,
): void {
  for (const name of Object.keys(qcn.ports)) {
    const path = at("qcn", "ports", name);
    const names = known(path);
    if (!names.includes(name)) found.unknown(path, `port of switch ${device}:`, name, names);
  }
}

/** Checks hosts and switches together, where the hosts run QCN. */
export function checkQcnNetwork(scenario: Scenario, graph: Graph, found: Findings): void {
  const points = scenario.switches.filter(({ qcn }) => qcn.enabled);
  if (points.length === 0) {
    found.warn(
      "congestion.algorithm is qcn, but no switch has congestion points (switch.qcn.enabled: true): nothing slows senders",
    );
  }
  if (points.some(({ ecn, qcn }) => ecn.enabled && ecn.priorities.some((p) => qcn.priorities.includes(p)))) {
    found.warn("switches mark ECN at CNPVs, but the hosts run QCN and do not look at marks: switch.ecn.enabled: false");
  }
  const octets = Math.min(...points.map(({ qcn }) => qcn.cpMinHeaderOctets), Number.MAX_SAFE_INTEGER);
  const hosts = new Map(scenario.hosts.map((host) => [host.name, host]));
  for (const host of scenario.hosts) {
    checkReturnedHeaders(host, octets, found);
    checkLimiter(host, graph.hostLink(host.name)?.rate ?? 0, found);
  }
  for (const { group, from, priority } of scenario.flows) {
    if (hosts.get(from)?.qcn.priorities.includes(priority)) continue;
    found.warn(`traffic ${group}: priority ${priority} is not a CNPV, so QCN does not slow it`);
  }
}

/** Checks parameters of single CNPVs. `rate` of the host's link, bit/s; `at`: the place of the host's section. */
export function checkGroups({ name, qcn }: HostConfig, rate: number, at: Where, found: Findings): void {
  for (const [priority, parameters] of qcn.groups) {
    const path = at("qcn", "reaction_point_groups", String(priority));
    if (!qcn.priorities.includes(priority)) {
      const cnpvs = qcn.priorities.length === 0 ? "none" : qcn.priorities.join(", ");
      found.problem(path, `${priority} is no CNPV of ${name}, which has ${cnpvs}`, "name it in qcn.priorities, too");
    }
    checkRpg(parameters, rate, path.map(String), found);
  }
}

/** Warns of rates that a host's rate limiters cannot pass. `rate` of its link, bit/s. */
export function checkLimiter({ name, qcn }: HostConfig, rate: number, found: Findings): void {
  if (qcn.limiter !== "token-bucket" || rate <= kBucketRate) return;
  found.warn(
    `host ${name}: a token bucket of 3 KB that is filled each 16 us passes ${formatRate(kBucketRate)} at most, and the link has ${formatRate(rate)}`,
  );
}

/** Warns of too few returned octets. CNMs by IP return enough whatever the parameter says. */
function checkReturnedHeaders({ name, qcn }: HostConfig, octets: number, found: Findings): void {
  const needed = kHeaderOctets[qcn.flows];
  if (qcn.cn_tag || qcn.notification === "ip" || octets >= needed) return;
  found.warn(
    `host ${name}: without CN-TAGs, CNMs must return ${needed} bytes to tell flows by ${qcn.flows} apart, but ` +
      `cpMinHeaderOctets is ${octets}`,
  );
}

export function checkChanges({ changes, duration }: Scenario, { ports }: Graph, found: Findings): void {
  changes.forEach(({ at, switch: name, port }, i) => {
    const path = (field: string) => ["changes", i, field];
    if (at >= duration) {
      const message = `${formatTime(at)} is not before the end of the run, ${formatTime(duration)}`;
      found.problem(path("at"), message, "at must be less than duration");
    }
    const peers = ports.get(name)?.map(({ peer }) => peer);
    if (peers === undefined) found.unknown(path("switch"), "switch", name, [...ports.keys()]);
    else if (!peers.includes(port)) found.unknown(path("port"), `port of switch ${name}:`, port, peers);
  });
}
