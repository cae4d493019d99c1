// What one field alone cannot tell: relations between fields. Problems stop the scenario, warnings accompany it.
import { checkReceiveBuffer, checkSwitch, checkUnshaped, Findings, fittingPathMtu } from "./check-device.js";
import { checkTopology, unknownName } from "./check-topology.js";
import { checkCongestion } from "./congestion.js";
import type { Problem } from "./error.js";
import { entries, slowestHostRate } from "./resolve.js";
import type { ScenarioInput } from "./schema.js";
import { hostLink, type SwitchPort, switchesBetween, switchPorts } from "./topology.js";
import type { HostConfig, Scenario, SwitchConfig } from "./types.js";
import { formatRate, formatTime } from "./units.js";

const MOST_SAMPLES = 1_000_000;

export function checkScenario(scenario: Scenario, input: ScenarioInput): { problems: Problem[]; warnings: string[] } {
  const found = new Findings();
  for (const problem of checkTopology(scenario)) found.problem(problem.path, problem.message, problem.hint);
  const sound = found.problems.size === 0;
  checkTimes(scenario, found);
  const ports = switchPorts(scenario);
  for (const s of scenario.switches) {
    const own = (ports.get(s.name) ?? []).map(({ peer, link: { rate, delay, mtu } }) => ({
      name: peer,
      rate,
      delay,
      mtu,
    }));
    checkSwitch(s, own, (...field) => origin(input, "switch", s.name, field), found);
    checkUnshaped(s, own, found);
  }
  for (const host of scenario.hosts) checkHost(host, scenario, input, found);
  checkTraffic(scenario, input, found);
  checkProbes(scenario, ports, found);
  if (sound) {
    checkPriorities(scenario, found);
    if (scenario.congestion.algorithm === "dcqcn") {
      const { problems, warnings } = checkCongestion(scenario.congestion.parameters, slowestHostRate(scenario));
      for (const { path, message, hint } of problems) found.problem(path, message, hint);
      for (const warning of warnings) found.warn(warning);
    }
  }
  return { problems: [...found.problems.values()], warnings: [...found.warnings] };
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
  if (duration / probes.interval > MOST_SAMPLES) {
    const least = formatTime(Math.ceil(duration / MOST_SAMPLES));
    const message = `${formatTime(probes.interval)} gives ${Math.ceil(duration / probes.interval)} samples`;
    found.problem(["probes", "interval"], message, `must be at least ${least} for this duration`);
  }
}

type Section = Record<string, unknown> | null | undefined;

/** Where a device's field was written: with the device, or in the section of defaults. */
function origin(input: ScenarioInput, kind: "switch" | "host", name: string, field: string[]): string[] {
  const list = kind === "switch" ? "switches" : "hosts";
  const own = entries(input.topology[list] as Record<string, object | null>).find(([n]) => n === name)?.[1];
  let at: unknown = own;
  for (const key of field) at = (at as Section)?.[key];
  return at === undefined || at === null ? [kind, ...field] : ["topology", list, name, ...field];
}

function checkHost(host: HostConfig, scenario: Scenario, input: ScenarioInput, found: Findings): void {
  const at = (...field: string[]) => origin(input, "host", host.name, field);
  const link = scenario.links.reduce((least, link) => (link.mtu < least.mtu ? link : least));
  const narrow = fittingPathMtu(host.path_mtu, link.mtu);
  if (narrow !== undefined) {
    const message = `${host.path_mtu} needs an MTU of ${narrow.needed}, but the link ${link.from} -- ${link.to} has ${link.mtu}`;
    found.problem(at("path_mtu"), message, `use path_mtu: ${narrow.fits}, or topology.link.mtu: ${narrow.needed}`);
  }
  const own = hostLink(scenario, host.name);
  if (own !== undefined && own.rate > 0 && host.initial_rate > own.rate) {
    const message = `${formatRate(host.initial_rate)} is more than the line rate ${formatRate(own.rate)} of host ${host.name}`;
    found.problem(at("initial_rate"), message, "must be at most the rate of the host's link");
  }
  checkReceiveBuffer(host, at, found);
}

function checkTraffic(scenario: Scenario, input: ScenarioInput, found: Findings): void {
  const hosts = scenario.hosts.map((host) => host.name);
  const ids = new Map<string, number>();
  (input.traffic ?? []).forEach((entry, i) => {
    const path = ["traffic", i];
    const senders = Array.isArray(entry.from) ? entry.from : [entry.from];
    senders.forEach((from, k) => {
      const where = Array.isArray(entry.from) ? [...path, "from", k] : [...path, "from"];
      if (!hosts.includes(from)) found.problem(where, ...named(unknownName(where, "host", from, hosts)));
      else if (from === entry.to) found.problem(where, `${from} sends to itself`, "sender and receiver must differ");
      if (senders.indexOf(from) !== k)
        found.problem(where, `${from} is there twice`, "use qps for several queue pairs of one host");
    });
    if (!hosts.includes(entry.to)) found.problem([...path, "to"], ...named(unknownName([], "host", entry.to, hosts)));
    const start = entry.start ?? 0;
    const stop = entry.stop ?? scenario.duration;
    if (start >= scenario.duration) {
      const message = `${formatTime(start)} is not before the end of the run, ${formatTime(scenario.duration)}`;
      found.problem([...path, "start"], message, "start must be less than duration");
    } else if (stop <= start) {
      const message = `${formatTime(stop)} is not after start ${formatTime(start)}`;
      found.problem([...path, "stop"], message, "stop must be greater than start");
    }
    const other = entry.id === undefined ? undefined : ids.get(entry.id);
    if (other !== undefined)
      found.problem([...path, "id"], `${entry.id} is also the id of traffic.${other}`, "ids must differ");
    if (entry.id !== undefined) ids.set(entry.id, i);
  });
  const seen = new Set<string>();
  for (const { id } of scenario.flows) {
    if (seen.has(id) && !ids.has(id))
      found.problem(["traffic"], `two flows are called ${id}`, "give the entries ids that differ");
    seen.add(id);
  }
}

const named = (problem: Problem): [string, string | undefined] => [problem.message, problem.hint];

function checkProbes(scenario: Scenario, ports: Map<string, SwitchPort[]>, found: Findings): void {
  scenario.probes.queues.forEach((probe, i) => {
    const path = ["probes", "queues", i];
    const peers = ports.get(probe.switch)?.map((port) => port.peer);
    if (peers === undefined)
      found.problem(path, ...named(unknownName(path, "switch", probe.switch, [...ports.keys()])));
    else if (!peers.includes(probe.port)) {
      found.problem(path, ...named(unknownName(path, `port of switch ${probe.switch}:`, probe.port, peers)));
    }
  });
}

/** Do the classes of the hosts mean the same to the switches on the way? */
function checkPriorities(scenario: Scenario, found: Findings): void {
  const switches = new Map(scenario.switches.map((s) => [s.name, s]));
  const hosts = new Map(scenario.hosts.map((host) => [host.name, host]));
  const dcqcn = scenario.congestion.algorithm === "dcqcn";
  for (const flow of scenario.flows) {
    const cnp = hosts.get(flow.to)?.cnp;
    if (dcqcn && cnp?.priority === flow.priority) {
      found.warn(
        `host ${flow.to}: CNPs have the priority ${flow.priority} of the data, so congestion and pauses delay them too`,
      );
    }
    for (const name of switchesBetween(scenario, flow.from, flow.to)) {
      const s = switches.get(name);
      if (s === undefined) continue;
      if (s.trust === "dscp") checkDscp(s, flow.dscp, flow.priority, `data of priority ${flow.priority}`, found);
      if (s.trust === "dscp" && cnp !== undefined && dcqcn) checkDscp(s, cnp.dscp, cnp.priority, "CNPs", found);
      if (s.trust === "port-default" && s.default_priority !== flow.priority) {
        found.warn(
          `switch ${name}: trusts no mark, so data of priority ${flow.priority} travels as ${s.default_priority}`,
        );
      }
      if (s.pfc.enabled && !s.pfc.priorities.includes(flow.priority)) {
        found.warn(
          `switch ${name}: priority ${flow.priority} of the traffic is not lossless (pfc.priorities: ${s.pfc.priorities.join(", ")})`,
        );
      }
    }
  }
}

function checkDscp(s: SwitchConfig, dscp: number, priority: number, what: string, found: Findings): void {
  const actual = s.dscp_map[dscp];
  if (actual === priority) return;
  found.warn(`switch ${s.name}: dscp_map gives DSCP ${dscp} (${what}) priority ${actual}, not ${priority}`);
}
