// What one field alone cannot tell: relations between fields. Problems stop the scenario, warnings accompany it.
import { checkTopology, unknownName } from "./check-topology.js";
import { checkCongestion } from "./congestion.js";
import type { Problem } from "./error.js";
import { entries, slowestHostRate, staticThresholdBound } from "./resolve.js";
import type { ScenarioInput } from "./schema.js";
import { hostLink, type SwitchPort, switchesBetween, switchPorts } from "./topology.js";
import type { HostConfig, Scenario, SwitchConfig } from "./types.js";
import { formatRate, formatSize, formatTime } from "./units.js";

/** IPv4 20, UDP 8, BTH 12, RETH 16, immediate 4, ICRC 4: the most that goes around a payload inside an IP packet. */
const ROCE_OVERHEAD = 64;
/** Ethernet header with a tag, and FCS. */
const FRAME_OVERHEAD = 22;
const MOST_SAMPLES = 1_000_000;

/** What has been found so far; one finding per field and message, although many switches may share a section. */
class Findings {
  readonly problems = new Map<string, Problem>();
  readonly warnings = new Set<string>();

  problem(path: Problem["path"], message: string, hint?: string): void {
    const problem: Problem = hint === undefined ? { path, message } : { path, message, hint };
    this.problems.set(`${path.join(".")} ${message}`, problem);
  }
  warn(message: string): void {
    this.warnings.add(message);
  }
}

export function checkScenario(scenario: Scenario, input: ScenarioInput): { problems: Problem[]; warnings: string[] } {
  const found = new Findings();
  for (const problem of checkTopology(scenario)) found.problem(problem.path, problem.message, problem.hint);
  const sound = found.problems.size === 0;
  checkTimes(scenario, found);
  const ports = switchPorts(scenario);
  for (const s of scenario.switches) checkSwitch(s, ports.get(s.name) ?? [], input, found);
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

function checkSwitch(s: SwitchConfig, ports: SwitchPort[], input: ScenarioInput, found: Findings): void {
  const at = (...field: string[]) => origin(input, "switch", s.name, field);
  const { buffer, ecn, pfc } = s;
  if (ecn.kmin > ecn.kmax) {
    const message = `${formatSize(ecn.kmin)} is greater than kmax ${formatSize(ecn.kmax)}`;
    found.problem(at("ecn", "kmin"), message, "kmin must be between 0 and kmax");
  }
  if (!pfc.enabled || pfc.priorities.length === 0) {
    checkUnshaped(s, ports, found);
    return;
  }
  if (buffer.headroom === 0) {
    const message = `there is none, but priorities ${pfc.priorities.join(", ")} are lossless`;
    found.problem(at("buffer", "headroom"), message, "give headroom, or switch PFC off: pfc.enabled: false");
  }
  if (new Set(pfc.priorities).size > buffer.priorities) {
    const message = `headroom for ${buffer.priorities}, but priorities ${pfc.priorities.join(", ")} are lossless`;
    found.problem(at("buffer", "priorities"), message, `must be at least ${new Set(pfc.priorities).size}`);
  }
  const n = ports.length;
  const reserved = buffer.priorities * n * buffer.headroom;
  if (buffer.total <= reserved) {
    const message =
      `${formatSize(buffer.total)} is too small for the headroom of switch ${s.name}: ` +
      `${buffer.priorities} priorities x ${n} ports x ${formatSize(buffer.headroom)} = ${formatSize(reserved)}`;
    found.problem(
      at("buffer", "total"),
      message,
      `must be greater than ${formatSize(reserved)}, or reserve for fewer priorities`,
    );
    return;
  }
  checkThresholds(s, n, at, found);
  checkUnshaped(s, ports, found);
  for (const { peer, link } of ports) {
    // What is under way when a pause is decided: both directions of the cable, and a frame begun at either end.
    const inFlight = Math.ceil((2 * link.delay * link.rate) / 8e9) + 2 * (link.mtu + FRAME_OVERHEAD);
    if (buffer.headroom >= inFlight) continue;
    found.warn(
      `switch ${s.name}: headroom ${formatSize(buffer.headroom)} is less than the ${formatSize(inFlight)} that can be under way ` +
        `on the link to ${peer} (${formatRate(link.rate)}, ${formatTime(link.delay)}): packets may be lost in spite of PFC`,
    );
    break;
  }
}

/** Section 4 of the paper: t_PFC within the buffer, and ECN before PFC. */
function checkThresholds(s: SwitchConfig, n: number, at: (...field: string[]) => string[], found: Findings): void {
  const { buffer, ecn, pfc } = s;
  const fixed = buffer.mode === "static";
  if (fixed && buffer.xon_offset >= buffer.threshold) {
    const message = `${formatSize(buffer.xon_offset)} is not less than the threshold ${formatSize(buffer.threshold)}`;
    found.problem(at("buffer", "xon_offset"), message, "a paused queue is resumed at threshold - xon_offset");
  }
  const bound = staticThresholdBound(buffer, n);
  if (fixed && buffer.threshold > bound) {
    found.warn(
      `switch ${s.name}: static threshold ${formatSize(buffer.threshold)} is more than (B - P n t_flight) / (P n) = ` +
        `${formatSize(bound)}: the buffer can overflow before PFC acts`,
    );
  }
  if (!ecn.enabled || !ecn.priorities.some((priority) => pfc.priorities.includes(priority))) return;
  const free = buffer.total - buffer.priorities * n * buffer.headroom;
  const limit = fixed ? buffer.threshold / n : (buffer.beta * free) / (buffer.priorities * n * (buffer.beta + 1));
  if (ecn.kmin < limit) return;
  const rule = fixed ? "t_PFC / n" : "beta (B - P n t_flight) / (P n (beta + 1))";
  found.warn(
    `switch ${s.name}: kmin ${formatSize(ecn.kmin)} is not below ${rule} = ${formatSize(Math.floor(limit))}: ` +
      "PFC may act before ECN marks anything",
  );
}

function checkUnshaped(s: SwitchConfig, ports: SwitchPort[], found: Findings): void {
  const asked = [s.ecn.enabled && s.ecn.priorities.length > 0 ? "ECN" : "", s.pfc.enabled ? "PFC" : ""].filter(Boolean);
  const unshaped = ports.filter((port) => port.link.rate === 0).map((port) => port.peer);
  if (asked.length === 0 || unshaped.length === 0) return;
  found.warn(
    `switch ${s.name}: the port to ${unshaped.join(", ")} has no rate, so hardly a queue forms there: ` +
      `${asked.join(" and ")} will not act`,
  );
}

function checkHost(host: HostConfig, scenario: Scenario, input: ScenarioInput, found: Findings): void {
  const at = (...field: string[]) => origin(input, "host", host.name, field);
  const needed = host.path_mtu + ROCE_OVERHEAD;
  const narrow = scenario.links.find((link) => link.mtu < needed);
  if (narrow !== undefined) {
    const message = `${host.path_mtu} needs an MTU of ${needed}, but the link ${narrow.from} -- ${narrow.to} has ${narrow.mtu}`;
    const fits = [4096, 2048, 1024, 512].find((mtu) => mtu + ROCE_OVERHEAD <= narrow.mtu) ?? 256;
    found.problem(at("path_mtu"), message, `use path_mtu: ${fits}, or topology.link.mtu: ${needed}`);
  }
  const own = hostLink(scenario, host.name);
  if (own !== undefined && own.rate > 0 && host.initial_rate > own.rate) {
    const message = `${formatRate(host.initial_rate)} is more than the line rate ${formatRate(own.rate)} of host ${host.name}`;
    found.problem(at("initial_rate"), message, "must be at most the rate of the host's link");
  }
  const { size, xoff, xon } = host.receive_buffer;
  if (xoff > size) {
    const message = `${formatSize(xoff)} is more than the size ${formatSize(size)}`;
    found.problem(
      at("receive_buffer", "xoff"),
      message,
      "xoff must be less than size, with room for what is under way",
    );
  }
  if (xon > xoff) {
    const message = `${formatSize(xon)} is more than xoff ${formatSize(xoff)}`;
    found.problem(at("receive_buffer", "xon"), message, "xon must be between 0 and xoff");
  }
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
