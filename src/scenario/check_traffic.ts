// Checks that the traffic is possible, and that hosts and switches agree about its priorities.

import type { Findings } from "../base/findings.js";
import { formatTime } from "../base/units.js";
import { hearsCnps } from "../congestion/flow_state.js";
import type { ScenarioInput } from "./schema.js";
import type { Graph } from "./topology.js";
import type { FlowsInput } from "./traffic_schema.js";
import type { Flow, HostConfig, Scenario, SwitchConfig } from "./types.js";

export function checkTraffic(scenario: Scenario, input: ScenarioInput, found: Findings): void {
  const hosts = scenario.hosts.map((host) => host.name);
  const ids = new Map<string, number>();
  /** Groups whose clash has been reported. */
  const told = new Set<string>();
  (input.traffic ?? []).forEach((entry, i) => {
    const path = ["traffic", i];
    if (entry.pattern === undefined || entry.pattern === "flows") checkEnds(entry, path, hosts, found);
    const start = entry.start ?? 0;
    const stop = (entry.pattern === "program" ? undefined : entry.stop) ?? scenario.duration;
    if (start >= scenario.duration) {
      const message = `${formatTime(start)} is not before the end of the run, ${formatTime(scenario.duration)}`;
      found.problem([...path, "start"], message, "start must be less than duration");
    } else if (stop <= start) {
      const message = `${formatTime(stop)} is not after start ${formatTime(start)}`;
      found.problem([...path, "stop"], message, "stop must be greater than start");
    }
    const unnamed = entry.pattern === "flows" || entry.pattern === "program";
    const id = entry.id ?? (unnamed ? undefined : entry.pattern);
    const other = id === undefined ? undefined : ids.get(id);
    if (id !== undefined && other !== undefined) {
      found.ofNames([...path, "id"], `${id} is also the id of traffic.${other}`, "ids must differ");
      told.add(id);
    }
    if (id !== undefined) ids.set(id, i);
  });
  const seen = new Set<string>();
  for (const { id, group } of [...scenario.flows, ...scenario.tcp.map(({ id }) => ({ id, group: id }))]) {
    if (seen.has(id) && !told.has(group)) {
      found.problem(["traffic"], `two flows are called ${id}`, "give the entries ids that differ");
      told.add(group);
    }
    seen.add(id);
  }
}

/** Checks sender and receiver of an entry that names them. */
function checkEnds(entry: FlowsInput, path: (string | number)[], hosts: string[], found: Findings): void {
  const known = new Set(hosts);
  const senders = Array.isArray(entry.from) ? entry.from : [entry.from];
  const before = new Set<string>();
  senders.forEach((from, k) => {
    const where = Array.isArray(entry.from) ? [...path, "from", k] : [...path, "from"];
    if (!known.has(from)) found.unknown(where, "host", from, hosts);
    else if (from === entry.to) found.ofNames(where, `${from} sends to itself`, "sender and receiver must differ");
    if (before.has(from)) found.ofNames(where, `${from} is there twice`, "use qps for several queue pairs of one host");
    before.add(from);
  });
  if (!known.has(entry.to)) found.unknown([...path, "to"], "host", entry.to, hosts);
}

/** Checks that the classes of the hosts mean the same to the switches on the way. */
export function checkPriorities(scenario: Scenario, graph: Graph, found: Findings): void {
  const hosts = new Map(scenario.hosts.map((host) => [host.name, host]));
  const cnps = hearsCnps(scenario.congestion.algorithm);
  // Remarks of switches on each class; most classes get none, so paths are hardly ever looked for.
  const classes = new Map<string, Map<string, string[]>>();
  const seen = new Set<string>();
  for (const flow of scenario.flows) {
    const cnp = cnps ? hosts.get(flow.to)?.cnp : undefined;
    if (cnp?.priority === flow.priority) {
      found.warn(
        `host ${flow.to}: CNPs have the priority ${flow.priority} of the data, so congestion and pauses delay them too`,
      );
    }
    const ack = scenario.transport.type === "rc" ? hosts.get(flow.to)?.ack : undefined;
    const kind = `${flow.priority} ${flow.dscp} ${cnp?.priority} ${cnp?.dscp} ${ack?.priority} ${ack?.dscp}`;
    let remarks = classes.get(kind);
    if (remarks === undefined) {
      remarks = new Map(scenario.switches.map((s) => [s.name, remarksOf(s, flow, cnp, ack)] as const));
      for (const [name, texts] of remarks) if (texts.length === 0) remarks.delete(name);
      classes.set(kind, remarks);
    }
    if (remarks.size === 0) continue;
    const pinned = graph.pinnedPath(flow.from, flow.to);
    const ends = pinned?.join() ?? `${graph.neighbour(flow.from)} ${graph.neighbour(flow.to)}`;
    if (seen.has(`${kind} ${ends}`)) continue;
    seen.add(`${kind} ${ends}`);
    for (const name of graph.switchesBetween(flow.from, flow.to)) {
      for (const remark of remarks.get(name) ?? []) found.warn(`switch ${name}: ${remark}`);
    }
  }
}

/** Remarks on a switch on the way of a flow whose receiver sends such CNPs and acknowledgements. */
function remarksOf(
  s: SwitchConfig,
  flow: Flow,
  cnp: HostConfig["cnp"] | undefined,
  ack: HostConfig["ack"] | undefined,
): string[] {
  const remarks: string[] = [];
  const mapped = (dscp: number, priority: number, what: string) => {
    const actual = s.dscp_map[dscp];
    if (actual !== priority) remarks.push(`dscp_map gives DSCP ${dscp} (${what}) priority ${actual}, not ${priority}`);
  };
  if (s.trust === "dscp") mapped(flow.dscp, flow.priority, `data of priority ${flow.priority}`);
  if (s.trust === "dscp" && cnp !== undefined) mapped(cnp.dscp, cnp.priority, "CNPs");
  if (s.trust === "dscp" && ack?.priority !== undefined) mapped(ack.dscp, ack.priority, "acknowledgements");
  if (s.trust === "port-default" && s.default_priority !== flow.priority) {
    remarks.push(`trusts no mark, so data of priority ${flow.priority} travels as ${s.default_priority}`);
  }
  if (s.trimming.enabled && flow.dscp === s.trimming.dscp) {
    remarks.push(`DSCP ${flow.dscp} of the traffic is that of trimmed packets: its receiver takes all of it for such`);
  }
  const trimmed = s.trimming.enabled && s.trimming.priorities.includes(flow.priority);
  if (s.pfc.enabled && !trimmed && !s.pfc.priorities.includes(flow.priority)) {
    remarks.push(
      `priority ${flow.priority} of the traffic is not lossless (pfc.priorities: ${s.pfc.priorities.join(", ")})`,
    );
  }
  return remarks;
}
