/**
 * Turns a scenario into classes of flows of the fluid model, if the model can take it.
 *
 * The equations have one bottleneck and flows that always have something to send: streams from hosts of one switch to one of
 * them, one flow for each sender, all of one priority, DCQCN in the paper's form. Anything else is refused, with
 * the field that says so.
 *
 * Packets are those of the path MTU (or of the message, where that is less). On a link they take headers, FCS, preamble and gap
 * as well, which rates and the byte counter of Weir's NICs count: 1106 bytes for 1024. In a queue they take
 * 1082, which the switch counts.
 *
 * tau* is the CNP interval and the propagation delay there and back, of the longest path where paths differ. The paper has the
 * same two parts and then leaves out the second.
 *
 * Ignored, because the equations know nothing of it: PFC and buffers, hyper increase, `rpg_min_rate`, host.burst, the seed.
 */

import { type Problem, ScenarioError } from "../../base/error.js";
import { formatRate } from "../../base/units.js";
import { isDcqcn } from "../../congestion/algorithms.js";
import type { DcqcnParameters } from "../../congestion/dcqcn.js";
import { refuseKernelTraffic } from "../../scenario/kernel_traffic.js";
import type { Congestion, Flow, Scenario } from "../../scenario/types.js";
import { kEthernetOverhead, kHeaderBytes } from "../../wire/frame_size.js";
import { type ControlName, type DcqcnModelParameters, type FluidFlows, kControlNames } from "./parameters.js";

export interface ModelledScenario {
  parameters: DcqcnModelParameters;
  /** Classes of identical flows. */
  classes: FluidFlows[];
  /** Class of each flow of the scenario. */
  classOf: number[];
  /** Name of the one switch, and of the host at its congested port. */
  switch: string;
  receiver: string;
  priority: number;
}

/** Returns the scenario as the model sees it. Throws ScenarioError with everything that it cannot take. */
export function modelScenario(scenario: Scenario, delay?: number): ModelledScenario {
  refuseKernelTraffic(scenario, "the fluid model");
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

/** Picks those of DCQCN's parameters that the equations have. */
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

/** A setting that the equations have no meaning for, if there is one, the field that says so, and a remedy. */
type Misfit = readonly [message: string | false | undefined, field: string, hint?: string];

function problemsOf(misfits: readonly Misfit[]): Problem[] {
  return misfits.flatMap(([message, field, hint]) =>
    message ? [{ path: field.split("."), message, ...(hint !== undefined && { hint }) }] : [],
  );
}

function networkProblems({ switches, links, hosts, flows, changes, failures, faults }: Scenario): Problem[] {
  const used = new Set(flows.flatMap(({ from, to }) => [from, to]));
  const mtus = new Set(hosts.filter(({ name }) => used.has(name)).map(({ path_mtu }) => path_mtu));
  const ecn = switches[0]?.ecn;
  const priority = flows[0]?.priority;
  const unmarked = ecn !== undefined && priority !== undefined && !(ecn.enabled && ecn.priorities.includes(priority));
  return problemsOf([
    [
      changes.length > 0 && "service rates change: the equations have one",
      "changes",
      "leave changes out, or weir sim run",
    ],
    [
      failures.length > 0 && "links or switches fail: the equations have none that do",
      "failures",
      "leave failures out, or weir sim run",
    ],
    [
      faults.length > 0 && "frames are harmed: the equations lose nothing",
      "faults",
      "leave faults out, or weir sim run",
    ],
    [
      switches.length !== 1 && `${switches.length} switches: the equations have one queue`,
      "topology",
      "use one switch, or weir sim run",
    ],
    ...links
      .filter(({ from, to }) => used.has(from) || used.has(to))
      .flatMap(({ from, to, rate, impairment }): Misfit[] => [
        [rate === 0 && `${from} -- ${to} has no rate`, "topology.links"],
        [impairment && `${from} -- ${to} has an impairment`, "topology.links", "the equations lose nothing"],
      ]),
    [
      mtus.size > 1 && `hosts have path MTUs of ${[...mtus].join(", ")} bytes: the equations have one size of packets`,
      "host.path_mtu",
    ],
    [unmarked && `the switch does not mark priority ${priority}`, "switch.ecn", "the equations need marks"],
    [ecn?.queue === "averaged" && "averaged: equation 5 has the instantaneous queue", "switch.ecn.queue"],
    [ecn?.enabled && ecn.pmax === 0 && "0: nothing is marked", "switch.ecn.pmax"],
    ...hosts.map(({ name, receive_buffer: { rate } }): Misfit => {
      const drains = `${name} drains at ${formatRate(rate)}: the equations have one bottleneck, the switch`;
      return [rate !== 0 && drains, "host.receive_buffer.rate"];
    }),
  ]);
}

function trafficProblems({ flows, hosts, transport }: Scenario): Problem[] {
  const { type } = transport;
  const streams: Misfit = [
    type !== "stream" && `${type}: the equations have no acknowledgements`,
    "transport.type",
    "use stream",
  ];
  const [first] = flows;
  if (first === undefined) return problemsOf([streams, ["there are no flows", "traffic", "add traffic"]]);
  const senders = flows.map(({ from }) => from);
  const twice = senders.find((from, i) => senders.indexOf(from) !== i);
  const mtus = new Map(hosts.map(({ name, path_mtu }) => [name, path_mtu]));
  const packets = new Set(flows.map(({ from, message }) => Math.min(message, mtus.get(from) ?? message)));
  const limited = flows.find(({ rate, bytes, sizes }) => (rate ?? bytes ?? sizes) !== undefined);
  return problemsOf([
    streams,
    [
      flows.some(({ to }) => to !== first.to) && "flows go to several hosts: the equations have one bottleneck",
      "traffic",
      "let all flows go to one host, or use weir sim run",
    ],
    [senders.includes(first.to) && `${first.to} sends and receives`, "traffic", "let the receiver only receive"],
    [
      twice && `${twice} sends several flows: its own link is a bottleneck, too`,
      "traffic",
      "one flow for each sender, or weir sim run",
    ],
    [
      flows.some(({ priority }) => priority !== first.priority) &&
        "flows have several priorities: the equations have one queue",
      "traffic",
      "use one priority",
    ],
    [
      packets.size > 1 && "flows have packets of different sizes: the equations have one",
      "traffic",
      "use messages of at least the path MTU",
    ],
    [
      limited &&
        `${limited.id} does not always have something to send (rate, bytes or sizes): the equations have greedy flows`,
      "traffic",
      "leave rate, bytes and sizes out; start and stop may be given",
    ],
  ]);
}

/** Rules of Mellanox's overview; the equations describe the paper's increases. */
const kIncreaseRules = ["increase_restarts_counters", "stage_by_increases", "increase_raises_rate"] as const;

/** Names settings of the congestion control that the equations cannot describe. */
export function algorithmProblems(congestion: Congestion): Problem[] {
  if (!isDcqcn(congestion)) {
    const message = `${congestion.algorithm}: the equations are those of DCQCN`;
    return problemsOf([[message, "congestion.algorithm", "use dcqcn"]]);
  }
  const { profile, parameters: p } = congestion;
  if (p.form !== "paper") {
    const message = `${profile} has the slotted form; the equations are those of the paper's`;
    return problemsOf([[message, "congestion.profile", "use paper-sigcomm15 or ns3-rdma"]]);
  }
  const needs: [boolean, string, string][] = [
    [p.rate_decrease_factor === 0.5, "rpg_gd", "equation 9 halves: must be 11"],
    [p.rpg_min_dec_fac <= 0.5, "rpg_min_dec_fac", "equation 9 has no limit to a cut: must be at most 50%"],
    [p.clamp_tgt_rate, "clamp_tgt_rate", "equation 8 sets R_T to R_C at every cut: must be true"],
    ...kIncreaseRules.map((rule): [boolean, string, string] => [
      !p[rule],
      rule,
      "the equations have the paper's rate increase: must be false",
    ]),
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
  return problemsOf(needs.map(([met, name, message]) => [!met && message, `congestion.parameters.${name}`]));
}
