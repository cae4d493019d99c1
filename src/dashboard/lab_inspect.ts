/** Ports and queue pairs of a running lab. */

import { formatRate, formatTime } from "../base/units.js";
import { hasAlpha } from "../congestion/flow_state.js";
import type { LabAccess } from "../lab/access.js";
import { queuePairsOf } from "../lab/compose.js";
import { switchPorts } from "../scenario/topology.js";
import { countersOf, portOf, queuePairFacts, switchPortFacts } from "./inspect.js";
import type { Inspection } from "./protocol.js";

/** Of the device `node` that to `peer`. */
export function inspectLabPort(lab: LabAccess, text: string): Inspection | undefined {
  const { node, peer } = portOf(text) ?? {};
  const link = lab.scenario.links.find(
    ({ from, to }) => (from === node && to === peer) || (from === peer && to === node),
  );
  if (link === undefined || node === undefined || peer === undefined) return undefined;
  const facts = [
    { name: "rate", value: link.rate === 0 ? "unlimited" : formatRate(link.rate) },
    { name: "delay", value: formatTime(link.delay) },
    { name: "MTU", value: String(link.mtu) },
  ];
  const index = lab.scenario.switches.findIndex(({ name }) => name === node);
  const title = `port of ${node} to ${peer}`;
  if (index < 0) return { title, facts, counters: countersOf(lab.nics.counters, { device: node }, "qpn") };
  const port = switchPorts(lab.scenario)
    .get(node)
    ?.findIndex((candidate) => candidate.peer === peer);
  const state = lab.switches.worker.switchState(index).ports[port ?? -1];
  return {
    title,
    facts: [...facts, ...(state === undefined ? [] : switchPortFacts(state))],
    counters: countersOf(lab.switches.counters, { switch: node, port: peer }),
  };
}

/** The sender's end of a flow; counters of both ends. */
export function inspectLabQueuePair(lab: LabAccess, name: string): Inspection | undefined {
  const { scenario } = lab;
  const flow = scenario.flows.find(({ id }) => id === name);
  if (flow === undefined) return undefined;
  const host = scenario.hosts.findIndex((one) => one.name === flow.from);
  const place = queuePairsOf(scenario, flow.from).findIndex((pair) => pair.flow === flow);
  const pair = lab.nics.worker.queuePairs(host)[place];
  if (pair === undefined) return undefined;
  const alpha = hasAlpha(scenario.congestion.algorithm) ? pair.alpha : null;
  return {
    title: `queue pair of ${name}`,
    facts: [
      { name: "from", value: flow.from },
      { name: "to", value: flow.to },
      { name: "priority", value: String(flow.priority) },
      ...queuePairFacts(pair, alpha, lab.scale),
    ],
    counters: countersOf(lab.nics.counters, { flow: name }),
  };
}
