/** What a lab cannot run, and virtual time can. */
import { WeirError } from "../base/error.js";
import { formatRate, formatTime } from "../base/units.js";
import { hearsAcknowledgements } from "../congestion/flow_state.js";
import type { Scenario } from "../scenario/types.js";
import { kHeaderBytes } from "../wire/frame_size.js";

/** Namespaces and veth pairs that one host can be asked to make. */
const kMostHosts = 250;
const kMostSwitches = 250;
const kMostFlows = 10_000;
/** Frames that a link may hold: the slots of a port, less those for what comes while its worker is late. */
const kMostUnderWay = 50_000;

/** @throws WeirError for what only the simulator does. */
export function checkForLab({ congestion, transport, failures, flows, hosts, switches, links }: Scenario): void {
  const refuse = (message: string, remedy: string) => {
    throw new WeirError(message, { hint: `${remedy}, or run it in virtual time: weir sim run` });
  };
  if (hearsAcknowledgements(congestion.algorithm)) {
    const { algorithm } = congestion;
    refuse(
      `congestion.algorithm: labs have no acknowledgements, by which ${algorithm} hears of congestion`,
      "use dcqcn",
    );
  }
  // Closed-loop flows need reliable connections, so they are refused here too.
  if (transport.type === "rc") {
    refuse("transport.type: labs send streams without acknowledgements, not rc", "use transport.type: stream");
  }
  if (failures.length > 0) refuse("failures: links and switches of a lab do not fail", "leave them out");
  for (const [what, count, most] of [
    ["hosts", hosts.length, kMostHosts],
    ["switches", switches.length, kMostSwitches],
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
