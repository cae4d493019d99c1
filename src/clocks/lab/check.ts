/** Checks for scenarios that only virtual time can run. */
import { WeirError } from "../../base/error.js";
import { formatRate, formatTime } from "../../base/units.js";
import { Share } from "../../scenario/parts.js";
import type { Scenario } from "../../scenario/types.js";
import { kHeaderBytes } from "../../wire/frame_size.js";

/** Namespaces and veth pairs that one host can be asked to make. */
const kMostHosts = 250;
const kMostSwitches = 250;
const kMostFlows = 10_000;
/** Frames that a link may hold: the slots of a port, less those for what comes while its worker is late. */
const kMostUnderWay = 50_000;

/** @throws WeirError for scenarios that only the simulator can run. */
export function checkForLab(scenario: Scenario): void {
  const { flows, hosts, links, part } = scenario;
  const share = new Share(scenario);
  if (part !== undefined) checkForPart(scenario);
  const refuse = (message: string, remedy: string) => {
    throw new WeirError(message, { hint: `${remedy}, or run it in virtual time: weir sim run` });
  };
  for (const [what, count, most] of [
    ["hosts", share.hosts.length, kMostHosts],
    ["switches", share.switches.length, kMostSwitches],
    ["flows", flows.length, kMostFlows],
  ] as const) {
    if (count > most) refuse(`${count} ${what} are too many for a lab`, `use at most ${most}`);
  }
  // Frames wait in the receiving port until the link's delay is over; bytes under way are the same at every scale.
  const frame = Math.min(...hosts.map((host) => host.path_mtu)) + kHeaderBytes;
  for (const { from, to, rate, delay } of links) {
    const frames = Math.ceil((rate * delay) / 8e9 / frame);
    if (frames <= kMostUnderWay) continue;
    refuse(
      `${frames} frames are under way on the link ${from} -- ${to} (${formatRate(rate)}, ${formatTime(delay)})`,
      `at most ${kMostUnderWay} fit a port: shorten the delay, or use a larger path_mtu`,
    );
  }
}

/** @throws WeirError for traffic that cannot be run in parts. */
function checkForPart({ tcp, programs, graphs }: Scenario): void {
  const [what] = [
    tcp.length > 0 ? "TCP" : [],
    programs.length > 0 ? "programs" : [],
    graphs.length > 0 ? "message graphs" : [],
  ].flat();
  if (what === undefined) return;
  throw new WeirError(`traffic: ${what} of a scenario do not run in parts`, {
    hint: "leave them out, or keep the network up at all parts, and start them by hand: weir lab up --part, weir lab exec",
  });
}

/** @throws WeirError where each part would find a scale of its own. */
export function checkScaleOfPart({ scale, part }: Scenario): void {
  if (scale !== "auto" || part === undefined) return;
  throw new WeirError("scale: auto is found by running the scenario, and this is a part of it", {
    hint: "give a number, the same at all parts: scale in the file, or --scale; one machine alone finds it without --part",
  });
}
