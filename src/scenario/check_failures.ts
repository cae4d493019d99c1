// Checks of failures: they name devices and links that exist, and happen during the run.
import type { Findings } from "../base/findings.js";
import { formatTime } from "../base/units.js";
import type { Scenario } from "./types.js";

export function checkFailures({ failures, links, hosts, switches, duration }: Scenario, found: Findings): void {
  const switchNames = switches.map(({ name }) => name);
  const names = [...hosts.map(({ name }) => name), ...switchNames];
  const peersOf = (device: string) =>
    links.flatMap(({ from, to }) => (from === device ? [to] : to === device ? [from] : []));
  failures.forEach(({ link, switch: name, at }, i) => {
    const path = (field: string) => ["failures", i, field];
    if (at >= duration) {
      const message = `${formatTime(at)} is not before the end of the run, ${formatTime(duration)}`;
      found.problem(path("at"), message, "at must be less than duration");
    }
    if (name !== undefined && !switchNames.includes(name)) found.unknown(path("switch"), "switch", name, switchNames);
    if (link === undefined) return;
    const unknown = [link.from, link.to].filter((end) => !names.includes(end));
    for (const end of unknown) found.unknown(path("link"), "host or switch", end, names);
    const peers = peersOf(link.from);
    if (unknown.length > 0 || peers.includes(link.to)) return;
    const message = `there is no link ${link.from} -- ${link.to}`;
    found.problem(path("link"), message, `${link.from} is linked to ${peers.slice(0, 12).join(", ")}`);
  });
}
