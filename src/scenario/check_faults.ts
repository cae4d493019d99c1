/** Checks of faults: they are at ports that exist, concern hosts that exist, and happen during the run. */
import type { Findings } from "../base/findings.js";
import { formatTime } from "../base/units.js";
import { kTrimDscp } from "./fault_schema.js";
import { kMostOutages, linksOfFault, timesDown } from "./faults.js";
import type { Scenario } from "./types.js";

/** Most faults of one port: the native core looks at each for every frame. */
const kMostAtPort = 64;

export function checkFaults({ faults, links, hosts, switches, duration }: Scenario, found: Findings): void {
  const hostNames = hosts.map(({ name }) => name);
  const names = [...hostNames, ...switches.map(({ name }) => name)];
  const taken = new Map<string, number>();
  faults.forEach((fault, i) => {
    const { device, port, at, down = 0, up = 0, kind, dscp = kTrimDscp } = fault;
    const path = (field: string) => ["faults", i, field];
    if (at >= duration) {
      const message = `${formatTime(at)} is not before the end of the run, ${formatTime(duration)}`;
      found.problem(path("at"), message, "at must be less than duration");
    }
    for (const end of ["from", "to"] as const) {
      const host = fault[end];
      if (host !== undefined && !hostNames.includes(host)) found.unknown(path(end), "host", host, hostNames);
    }
    if (kind === "trim" && hosts.every(({ trimmed_dscp }) => trimmed_dscp !== dscp)) {
      const message = `no host knows ${dscp} as the DSCP of trimmed packets`;
      found.problem(path("dscp"), message, `switch: { trimming: { enabled: true, dscp: ${dscp} } }, or another dscp`);
    }
    if ((kind === "error" || kind === "slow") && switches.some(({ name }) => name === device)) {
      found.problem(path("device"), `kind ${kind} is of hosts, and ${device} is a switch`, "name a host");
      return;
    }
    if (!names.includes(device)) {
      found.unknown(path("device"), "host or switch", device, names);
      return;
    }
    const places = linksOfFault(links, fault).map((link) => `${links.indexOf(link)} ${device}`);
    const before = places.map((place) => taken.get(place) ?? 0);
    places.forEach((place, j) => {
      taken.set(place, (before[j] ?? 0) + 1);
    });
    if (before.includes(kMostAtPort)) {
      const message = `${device} has ${kMostAtPort} there already`;
      found.problem(path("device"), message, "fewer, or at other ports");
    }
    const peers = links.flatMap(({ from, to }) => (from === device ? [to] : to === device ? [from] : []));
    if (port === undefined && peers.length > 1 && kind !== "down") {
      found.problem(
        path("port"),
        `is missing: ${device} has ${peers.length}`,
        `one of ${peers.slice(0, 12).join(", ")}`,
      );
    } else if (places.length === 0) {
      found.unknown(path("port"), `port of ${device}`, port ?? "", peers);
    } else if (down + up > 0 && places.length * timesDown(fault, duration).length > kMostOutages) {
      const message = `links would go down more than ${kMostOutages} times`;
      found.problem(path("down"), message, "longer times, or a shorter `for`");
    }
  });
}
