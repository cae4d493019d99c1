/** Scale of a lab in which people live, where nothing sets it. */

import { Graph } from "../../scenario/topology.js";
import type { Scenario } from "../../scenario/types.js";
import { twoDigits } from "../lab/calibrate.js";

/** Rate of the fastest host's link on this host, bit/s: two CPUs carry some of these across a fabric, and their programs. */
const kFastestHere = 250e6;

/** There is no traffic to try scales with, so `auto` goes by the links. */
export function standingScale(scenario: Pick<Scenario, "scale" | "hosts" | "switches" | "links" | "routes">): number {
  if (scenario.scale !== "auto") return scenario.scale;
  const graph = new Graph(scenario);
  const rates = scenario.hosts.map(({ name }) => graph.hostLink(name)?.rate ?? 0);
  return twoDigits(Math.max(0, ...rates) / kFastestHere);
}
