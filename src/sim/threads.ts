/** How many threads a simulation is worth. */
import { availableParallelism } from "node:os";
import type { SimulationConfig } from "../native/simulation_types.js";

/** As the native core has it. */
export const kMostThreads = 128;
/** Of a window of lookahead, ns. */
const kLongestWindow = 1024;
/** Bytes of a frame that fills a link, about. */
const kFrame = 1100;
/** Frames that hosts can send in a window for each thread: below, most of the gain goes into waiting for each other. */
const kWorthwhile = 128;

type Network = Pick<SimulationConfig, "nics" | "switches" | "links">;

/** As many as `cpus` allow, fewer where the hosts cannot send enough in the time that devices live apart. */
export function worthwhileThreads(network: Network, cpus = availableParallelism()): number {
  const line = network.nics.reduce((sum, { rate }) => sum + rate, 0);
  const frames = (line * window(network)) / 8e9 / kFrame;
  return Math.max(1, Math.min(cpus, kMostThreads, Math.floor(frames / kWorthwhile)));
}

/** What passes at least until what one device does is felt by another, ns. */
function window({ nics, switches, links }: Network): number {
  const rate = ({ device, port }: Network["links"][number]["from"]) =>
    switches[device]?.ports[port]?.rate ?? nics[device - switches.length]?.rate ?? 0;
  return links.reduce((least, link) => {
    const fastest = Math.max(rate(link.from), rate(link.to));
    return Math.min(least, link.delay + (fastest > 0 ? (84 * 8e9) / fastest : 0));
  }, kLongestWindow);
}
