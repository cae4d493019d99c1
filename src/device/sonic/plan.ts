/** A scenario of one switch made of a config_db.json, with a host at each port: it shows whether the switch is lossless. */
import { ScenarioError } from "../../base/error.js";
import { type Converted, kNoSpeed } from "./convert.js";
import { placeOf } from "./notes.js";

/** MTU that SONiC gives a port whose file has none. */
const kDefaultMtu = 9100;

/** @throws ScenarioError if a port has no speed: without one, there is no bound for bytes after a pause. */
export function checkSpeeds({ source, ports }: Converted): void {
  const keys = ports.filter(({ rate }) => rate === undefined).map(({ name }) => name);
  if (keys.length === 0) return;
  const path = [placeOf({ table: "PORT", keys, field: "speed" })];
  throw new ScenarioError(source, [{ path, message: kNoSpeed }], "config_db");
}

/** Data of a scenario file. All ports send to one at each lossless priority: an incast, whatever its degree. */
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
