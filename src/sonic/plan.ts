/** A scenario of one switch made of a config_db.json, with a host at each port: for who asks whether it is lossless. */
import type { Converted } from "./convert.js";

/** SONiC's, of a port whose file has none. */
const kDefaultMtu = 9100;

/** As of a scenario file. All ports send to one at each lossless priority: an incast, whatever its degree. */
export function scenarioOf({ config, ports }: Converted): object {
  const { name, ports: _, pfc_watchdog: _w, router: _r, ...section } = config;
  const priorities = (section.pfc as { priorities: number[] }).priorities;
  const [receiver, ...senders] = ports.map((port) => port.name);
  return {
    name,
    scale: 1,
    switch: section,
    topology: {
      switches: [name],
      hosts: ports.map((port) => port.name),
      links: ports.map(({ name: from, rate, mtu = kDefaultMtu, delay = 0 }) => ({
        ...{ from, to: name, mtu },
        rate: rate ?? "unlimited",
        delay: `${delay}ns`,
      })),
    },
    traffic:
      senders.length === 0
        ? []
        : priorities.map((priority) => ({ id: `incast-${priority}`, from: senders, to: receiver, priority })),
  };
}
