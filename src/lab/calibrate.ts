/** `scale: auto`: how much of the scenario's load this host can carry, found by a short run. */

import { LabNetwork } from "../host/veth.js";
import type { NativeAddon } from "../native/types.js";
import { parseScenario } from "../scenario/scenario.js";
import { Graph } from "../scenario/topology.js";
import type { Scenario } from "../scenario/types.js";
import { labNetwork } from "./compose.js";
import { execute } from "./execution.js";

const kWallSeconds = 0.5;
/** Part of the measured capacity that a run may use, so that a moment's delay can be made up for. */
const kShare = 0.5;

/**
 * Sends from one host to another through one switch as fast as this host can and counts the frames; the scale is then
 * what lets every sender of the scenario send at line rate, over all its hops, within half of that.
 */
export async function calibrate(addon: NativeAddon, scenario: Scenario, signal: AbortSignal): Promise<number> {
  const probe = parseScenario({
    name: "calibration",
    scale: 1,
    duration: `${kWallSeconds}s`,
    warmup: "100ms",
    topology: {
      link: { rate: "10Gbps", delay: "1us" },
      switches: ["s"],
      hosts: ["a", "b"],
      links: ["a -- s", "b -- s"],
    },
    congestion: { algorithm: "none" },
    traffic: [{ from: ["a"], to: "b" }],
    probes: { interval: "10ms" },
  }).scenario;
  const { nodes, links } = labNetwork(probe);
  const network = await LabNetwork.create(nodes, links);
  try {
    const { recorder } = await execute(addon, probe, {
      scale: 1,
      end: (link, node) => network.end(link, node),
      signal,
      observers: [],
    });
    const flow = probe.flows[0]?.id ?? "";
    const { wireBytes } = recorder.delivered(flow, probe.warmup, probe.duration);
    const bitsPerSecond = (wireBytes * 8) / ((probe.duration - probe.warmup) / 1e9);
    return scaleFor(offeredLoad(scenario), bitsPerSecond * kShare);
  } finally {
    network.close();
  }
}

/** Bits per second over all hops when every sending host sends at line rate. */
export function offeredLoad(scenario: Scenario): number {
  const load = new Map<string, number>();
  const graph = new Graph(scenario);
  for (const flow of scenario.flows) {
    const rate = graph.hostLink(flow.from)?.rate ?? 0;
    const hops = graph.switchesOnPath(flow.from, flow.to);
    load.set(flow.from, Math.max(load.get(flow.from) ?? 0, rate * hops));
  }
  return [...load.values()].reduce((sum, x) => sum + x, 0);
}

/** The smallest scale that fits, rounded up to two digits; at least 1. */
export function scaleFor(load: number, capacity: number): number {
  const scale = Math.max(1, load / Math.max(capacity, 1));
  const step = 10 ** Math.max(0, Math.floor(Math.log10(scale)) - 1);
  return Math.ceil(scale / step) * step;
}
