/**
 * Which scenarios the fluid model can take, and what they are to it.
 *
 * The equations have one bottleneck and flows that always have something to send: streams from hosts of one switch to one of them, one
 * flow for each sender, all of one priority, DCQCN in the paper's form. What is otherwise is refused, with the field that says so.
 *
 * Packets are those of the path MTU (or of the message, where that is less). On a link they take headers, FCS, preamble and gap as well,
 * which rates and the byte counter of Weir's NICs count: 1106 bytes for 1024. In a queue they take what the switch counts, 1082.
 *
 * tau* is the CNP interval and the propagation delay there and back, of the longest path where paths differ. The paper has the same two
 * parts and then leaves out the second.
 *
 * Not looked at, because the equations know nothing of it: PFC and buffers, hyper increase, `rpg_min_rate`, host.burst, the seed.
 */

import { type Problem, ScenarioError } from "../../base/error.js";
import { formatRate } from "../../base/units.js";
import { isDcqcn } from "../../congestion/algorithms.js";
import type { DcqcnParameters } from "../../congestion/dcqcn.js";
import type { Congestion, Flow, Scenario } from "../../scenario/types.js";
import { kEthernetOverhead, kHeaderBytes } from "../../wire/frame_size.js";
import { type ControlName, type DcqcnModelParameters, type FluidFlows, kControlNames } from "./parameters.js";

export interface ModelledScenario {
  parameters: DcqcnModelParameters;
  /** Classes of identical flows. */
  classes: FluidFlows[];
  /** Class of each flow of the scenario. */
  classOf: number[];
  /** The one switch, and the host at its congested port. */
  switch: string;
  receiver: string;
  priority: number;
}

/** The scenario as the model sees it. Throws ScenarioError with everything that it cannot take. */
export function modelScenario(scenario: Scenario, delay?: number): ModelledScenario {
  const problems = [
    ...networkProblems(scenario),
    ...trafficProblems(scenario),
    ...algorithmProblems(scenario.congestion),
  ];
  const { flows, switches, hosts, congestion } = scenario;
  if (problems.length > 0 || !isDcqcn(congestion)) {
    throw new ScenarioError(scenario.name, problems, "the fluid model cannot take scenario");
  }
  const [first] = flows as [Flow];
  const [device] = switches as [Scenario["switches"][number]];
  const { ecn } = device;
  const { parameters: p } = congestion;
  const link = (host: string) => scenario.links.find(({ from, to }) => from === host || to === host);
  const receiving = link(first.to) as Scenario["links"][number];
  const sender = hosts.find(({ name }) => name === first.from);
  const payload = Math.min(first.message, sender?.path_mtu as number);
  const queued = payload + kHeaderBytes;
  const longest = Math.max(...flows.map(({ from }) => link(from)?.delay ?? 0));
  const parameters: DcqcnModelParameters = {
    bandwidth: receiving.rate,
    packet: queued + kEthernetOverhead,
    queued,
    kmin: ecn.kmin,
    kmax: ecn.kmax,
    pmax: ecn.pmax,
    ...controlParameters(p),
    delay: delay ?? p.min_time_between_cnps + 2 * (longest + receiving.delay),
  };
  const classes: FluidFlows[] = [];
  const classOf = flows.map((flow) => {
    const own = fluidFlow(scenario, p, flow, link(flow.from)?.rate as number);
    const same = classes.findIndex(
      ({ start, stop, rate, lineRate }) =>
        start === own.start && stop === own.stop && rate === own.rate && lineRate === own.lineRate,
    );
    if (same >= 0) (classes[same] as FluidFlows).count++;
    else classes.push(own);
    return same >= 0 ? same : classes.length - 1;
  });
  return { parameters, classes, classOf, switch: device.name, receiver: first.to, priority: first.priority };
}

/** What the equations have of DCQCN's parameters. */
export function controlParameters(parameters: DcqcnParameters): Pick<DcqcnParameters, ControlName> {
  return Object.fromEntries(kControlNames.map((name) => [name, parameters[name]])) as Pick<
    DcqcnParameters,
    ControlName
  >;
}

function fluidFlow(
  { hosts, duration }: Scenario,
  { rpg_max_rate, initial_alpha_value }: DcqcnParameters,
  flow: Flow,
  rate: number,
): FluidFlows {
  const host = hosts.find(({ name }) => name === flow.from) as Scenario["hosts"][number];
  const lineRate = rpg_max_rate > 0 ? Math.min(rate, rpg_max_rate) : rate;
  return {
    count: 1,
    start: flow.start,
    stop: flow.stop >= duration ? Number.POSITIVE_INFINITY : flow.stop,
    rate: host.line_rate_start ? lineRate : Math.min(lineRate, host.initial_rate),
    lineRate,
    alpha: initial_alpha_value,
  };
}

function networkProblems({ switches, links, hosts, flows, changes }: Scenario): Problem[] {
  const problems: Problem[] = [];
  if (changes.length > 0) {
    const message = "service rates change: the equations have one";
    problems.push({ path: ["changes"], message, hint: "leave changes out, or weir sim run" });
  }
  if (switches.length !== 1) {
    const message = `${switches.length} switches: the equations have one queue`;
    problems.push({ path: ["topology"], message, hint: "use one switch, or weir sim run" });
  }
  const used = new Set(flows.flatMap(({ from, to }) => [from, to]));
  links.forEach((link) => {
    const name = `${link.from} -- ${link.to}`;
    if (!used.has(link.from) && !used.has(link.to)) return;
    if (link.rate === 0) problems.push({ path: ["topology", "links"], message: `${name} has no rate` });
    if (link.impairment !== undefined) {
      problems.push({
        path: ["topology", "links"],
        message: `${name} has an impairment`,
        hint: "the equations lose nothing",
      });
    }
  });
  const mtus = new Set(hosts.filter(({ name }) => used.has(name)).map(({ path_mtu }) => path_mtu));
  if (mtus.size > 1) {
    const message = `hosts have path MTUs of ${[...mtus].join(", ")} bytes: the equations have one size of packets`;
    problems.push({ path: ["host", "path_mtu"], message });
  }
  const ecn = switches[0]?.ecn;
  const priority = flows[0]?.priority;
  if (ecn !== undefined && priority !== undefined && !(ecn.enabled && ecn.priorities.includes(priority))) {
    const message = `the switch does not mark priority ${priority}`;
    problems.push({ path: ["switch", "ecn"], message, hint: "the equations need marks" });
  }
  if (ecn?.queue === "averaged") {
    const message = "averaged: equation 5 has the instantaneous queue";
    problems.push({ path: ["switch", "ecn", "queue"], message });
  }
  if (ecn?.enabled && ecn.pmax === 0)
    problems.push({ path: ["switch", "ecn", "pmax"], message: "0: nothing is marked" });
  for (const { name, receive_buffer } of hosts) {
    if (receive_buffer.rate === 0) continue;
    const message = `${name} drains at ${formatRate(receive_buffer.rate)}: the equations have one bottleneck, the switch`;
    problems.push({ path: ["host", "receive_buffer", "rate"], message });
  }
  return problems;
}

function trafficProblems({ flows, hosts, transport }: Scenario): Problem[] {
  const problems: Problem[] = [];
  const problem = (message: string, hint: string, ...path: string[]) =>
    problems.push({ path: path.length > 0 ? path : ["traffic"], message, hint });
  if (transport.type !== "stream") {
    problem(`${transport.type}: the equations have no acknowledgements`, "use stream", "transport", "type");
  }
  const [first] = flows;
  if (first === undefined) {
    problem("there are no flows", "add traffic");
    return problems;
  }
  if (flows.some(({ to }) => to !== first.to)) {
    problem(
      "flows go to several hosts: the equations have one bottleneck",
      "let all flows go to one host, or use weir sim run",
    );
  }
  if (flows.some(({ from }) => from === first.to)) {
    problem(`${first.to} sends and receives`, "let the receiver only receive");
  }
  const senders = flows.map(({ from }) => from);
  const twice = senders.find((from, i) => senders.indexOf(from) !== i);
  if (twice !== undefined) {
    problem(
      `${twice} sends several flows: its own link is a bottleneck, too`,
      "one flow for each sender, or weir sim run",
    );
  }
  if (flows.some(({ priority }) => priority !== first.priority)) {
    problem("flows have several priorities: the equations have one queue", "use one priority");
  }
  const mtus = new Map(hosts.map(({ name, path_mtu }) => [name, path_mtu]));
  if (new Set(flows.map(({ from, message }) => Math.min(message, mtus.get(from) ?? message))).size > 1) {
    problem("flows have packets of different sizes: the equations have one", "use messages of at least the path MTU");
  }
  const limited = flows.find(
    ({ rate, bytes, sizes }) => rate !== undefined || bytes !== undefined || sizes !== undefined,
  );
  if (limited !== undefined) {
    problem(
      `${limited.id} does not always have something to send (rate, bytes or sizes): the equations have greedy flows`,
      "leave rate, bytes and sizes out; start and stop may be given",
    );
  }
  return problems;
}

/** What in the congestion control the equations cannot describe. */
export function algorithmProblems(congestion: Congestion): Problem[] {
  if (!isDcqcn(congestion)) {
    const message = `${congestion.algorithm}: the equations are those of DCQCN`;
    return [{ path: ["congestion", "algorithm"], message, hint: "use dcqcn" }];
  }
  const { profile, parameters: p } = congestion;
  if (p.form !== "paper") {
    const message = `${profile} has the slotted form; the equations are those of the paper's`;
    return [{ path: ["congestion", "profile"], message, hint: "use paper-sigcomm15 or ns3-rdma" }];
  }
  const needs: [boolean, string, string][] = [
    [p.rate_decrease_factor === 0.5, "rpg_gd", "equation 9 halves: must be 11"],
    [p.rpg_min_dec_fac <= 0.5, "rpg_min_dec_fac", "equation 9 has no limit to a cut: must be at most 50%"],
    [p.clamp_tgt_rate, "clamp_tgt_rate", "equation 8 sets R_T to R_C at every cut: must be true"],
    [p.rate_to_set_on_first_cnp === 0, "rate_to_set_on_first_cnp", "the equations have no first CNP: must be 0"],
    [p.min_time_between_cnps > 0, "min_time_between_cnps", "it is tau of equations 8 and 9: must be more than 0"],
    [p.rpg_ai_rate > 0, "rpg_ai_rate", "without it there is no fixed point: must be more than 0"],
    [p.g > 0, "dce_tcp_g", "alpha would never change: must be less than 1024"],
    [
      p.rate_reduce_monitor_period <= p.min_time_between_cnps,
      "rate_reduce_monitor_period",
      "the equations cut at every CNP: must be at most min_time_between_cnps",
    ],
  ];
  return needs
    .filter(([met]) => !met)
    .map(([, name, message]) => ({ path: ["congestion", "parameters", name], message }));
}
