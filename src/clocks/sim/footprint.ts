/** Memory of a simulation, and a refusal where there is not as much: the kernel would end the process in the middle of the run. */
import { WeirError } from "../../base/error.js";
import type { SimulationAddon } from "../../native/simulation_types.js";
import type { Scenario } from "../../scenario/types.js";

/** Bytes of a scenario and of its result in JavaScript, by what there is of it: measured (test/clocks/sim/footprint.test.ts). */
const kPort = 3000;
const kFlow = 1500;
/** Memory of the program itself, bytes. */
const kProgram = 20e6;
const kGiB = 2 ** 30;

type Network = Pick<Scenario, "hosts" | "switches" | "links" | "flows" | "transport">;
type Sizes = Pick<SimulationAddon, "simulationFootprint">;

/** Bytes that are needed before any frame is under way, and for the result. A run takes more for frames in queues and on links. */
export function footprint({ hosts, switches, links, flows, transport }: Network, addon: Sizes): number {
  const ports = 2 * links.length - hosts.length;
  const size = {
    switches: switches.length,
    ports,
    hosts: hosts.length,
    flows: flows.length,
    reliable: transport.type === "rc",
  };
  return kProgram + ports * kPort + flows.length * kFlow + addon.simulationFootprint(size);
}

/**
 * @param available Bytes that this process may still have, by default of what the machine and its control group have left.
 * @throws WeirError where they do not suffice.
 */
export function requireMemory(network: Network, addon: Sizes, available = process.availableMemory()): void {
  const needed = footprint(network, addon);
  if (needed <= available) return;
  const { hosts, switches, flows } = network;
  throw new WeirError(
    `this simulation needs ${gib(needed)} GiB of memory at least, and ${gib(available)} GiB are available: ` +
      `${hosts.length} hosts, ${switches.length} switches, ${flows.length} flows`,
    { hint: "use fewer hosts, or fewer flows (a shorter duration, a lower load); or a machine with more memory" },
  );
}

function gib(bytes: number): string {
  return (bytes / kGiB).toFixed(bytes < 10 * kGiB ? 1 : 0);
}
