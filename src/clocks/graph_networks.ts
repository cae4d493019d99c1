/** Message graphs on networks without packets: an ideal one, where each message is alone, and fair shares of links. */
import { asWeirError, WeirError } from "../base/error.js";
import { operationsOf } from "../device/message_graphs.js";
import { placedGraph } from "../device/network.js";
import { routedNetwork } from "../device/routed_network.js";
import type { OperationTimes, SimulationAddon } from "../native/simulation_types.js";
import type { GraphTimes } from "../result/graph_times.js";
import type { Fabric } from "../scenario/fabric.js";
import type { GraphJob } from "../scenario/graphs/graph_job.js";
import type { Scenario } from "../scenario/types.js";

export interface FairTimes {
  times: OperationTimes;
  /** Bytes of messages that each direction of a link has carried, by Hop.direction. */
  carried: Float64Array;
}

/** Times of all graphs of a scenario, together, on max-min fair shares of its links (native/graph/fair_network.h). */
export function fairTimes(scenario: Scenario, fabric: Fabric, addon: Pick<SimulationAddon, "FairNetwork">): FairTimes {
  const network = asWeirError(
    () => new addon.FairNetwork({ graph: placedGraph(scenario, fabric), network: routedNetwork(scenario, fabric) }),
  );
  try {
    network.run(Number.MAX_SAFE_INTEGER);
    return { times: network.operations(), carried: network.carried() };
  } finally {
    network.close();
  }
}

/** Times on an ideal network: propagation of each path, and the rate of its slowest link. Its ranks begin at 0. */
export function idealTimes(job: GraphJob, fabric: Fabric, addon: Pick<SimulationAddon, "IdealNetwork">): GraphTimes {
  const { graph, hosts, machines, pairs, eager, rendezvous, inside_rate, inside_latency } = job;
  const count = pairs.length / 2;
  const ways = {
    from: new Uint32Array(count),
    to: new Uint32Array(count),
    latency: new Float64Array(count),
    rate: new Float64Array(count),
  };
  const paths = new Map<string, { latency: number; rate: number }>();
  for (let i = 0; i < count; i++) {
    const [from, to] = [pairs[2 * i] as number, pairs[2 * i + 1] as number];
    const [a, b] = [hosts[from] as string, hosts[to] as string];
    const way = paths.get(`${a} ${b}`) ?? wayOf(fabric, a, b);
    paths.set(`${a} ${b}`, way);
    ways.from[i] = from;
    ways.to[i] = to;
    ways.latency[i] = way.latency;
    ways.rate[i] = way.rate;
  }
  const network = new addon.IdealNetwork({
    operations: operationsOf(graph),
    eager,
    ...(rendezvous !== undefined && { rendezvous }),
    inside_rate,
    inside_latency,
    machine_of_rank: numbered(machines),
    ways,
  });
  try {
    network.run(Number.MAX_SAFE_INTEGER);
    return network.operations();
  } finally {
    network.close();
  }
}

/** For each name the place at which it is first. */
function numbered(names: readonly string[]): Uint32Array {
  const numbers = new Map<string, number>();
  for (const [i, name] of names.entries()) if (!numbers.has(name)) numbers.set(name, i);
  return Uint32Array.from(names, (name) => numbers.get(name) as number);
}

function wayOf(fabric: Fabric, from: string, to: string) {
  const path = fabric.path(fabric.host(from), fabric.host(to));
  if (path.length === 0) throw new WeirError(`there is no way from ${from} to ${to}`);
  const rates = path.map(({ link }) => link.rate).filter((rate) => rate > 0);
  return {
    latency: path.reduce((sum, { link }) => sum + link.delay, 0),
    rate: rates.length > 0 ? Math.min(...rates) : 0,
  };
}
