/** Makes a native simulation of a scenario. All units are meant ones: virtual time knows no scale and no lateness. */

import { composeNetwork, faultsOf, type Network, networkSwitch, type SwitchOptions } from "../../device/network.js";
import type { NativeSimulationSwitch, SimulationConfig } from "../../native/simulation_types.js";
import type { Fabric } from "../../scenario/fabric.js";
import type { Scenario } from "../../scenario/types.js";

/** Composes the simulation for one thread. @param taps Ports whose leaving frames are traced. */
export function composeSimulation(
  scenario: Scenario,
  fabric: Fabric,
  taps: SimulationConfig["taps"],
): SimulationConfig {
  const { switches, nics, ...network } = composeNetwork(scenario, fabric);
  return {
    seed: scenario.seed,
    sample_interval: scenario.probes.interval,
    reset_after: scenario.warmup,
    ...network,
    ...(scenario.faults.length > 0 && { faults: faultsOf(scenario, fabric) }),
    switches: switches.map(simulated),
    nics: nics.map(({ arrears: _, ...nic }) => nic),
    sampled_flows: Uint32Array.from({ length: Math.min(scenario.probes.flows, scenario.flows.length) }, (_, i) => i),
    sampled_queues: sampledQueues(scenario, fabric),
    all_distributions: keepsAllQueues(scenario, fabric),
    taps,
    threads: 1,
    fewer_threads: false,
  };
}

/** Distributions of all queues of a larger network would not fit the caches: a run of 1,024 hosts takes a third longer with them. */
const kMostPorts = 512;

/** Whether the lengths of all queues are told, or only of those of scenario.probes. */
function keepsAllQueues({ switches }: Scenario, fabric: Fabric): boolean {
  return switches.reduce((sum, _, i) => sum + (fabric.ports[i]?.length ?? 0), 0) <= kMostPorts;
}

/** The queues of scenario.probes as numbers, in their order. */
function sampledQueues(scenario: Scenario, fabric: Fabric): SimulationConfig["sampled_queues"] {
  return scenario.probes.queues.map((queue) => ({
    switch: fabric.device(queue.switch),
    port: fabric.portTo(queue.switch, queue.port),
    priority: queue.priority,
  }));
}

/** Switch number `index` of a simulation. */
export function composeSwitch(
  scenario: Scenario,
  fabric: Fabric,
  index: number,
  options: SwitchOptions,
): NativeSimulationSwitch {
  return simulated(networkSwitch(scenario, fabric, index, options));
}

function simulated(own: Network["switches"][number]): NativeSimulationSwitch {
  const { learning, group_of_host, pins } = own;
  // The table is for learned addresses and pins.
  const fdb_capacity = learning || pins.length > 0 ? 4 * (group_of_host.length + pins.length) : 0;
  return { ...own, fdb_capacity };
}
