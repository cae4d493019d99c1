/** Ports and queue pairs of a daemon. */
import { formatRate } from "../base/units.js";
import type { Device } from "../device/device.js";
import type { DeviceConfig } from "../device/file/load.js";
import { kNetwork } from "./device_session.js";
import { countersOf, portOf, queuePairFacts, switchPortFacts } from "./inspect.js";
import type { Inspection } from "./protocol.js";

/** The one port between the device and its neighbour, whichever of the two is named first. */
export function inspectDevicePort(config: DeviceConfig, device: Device, text: string): Inspection | undefined {
  const { node, peer } = portOf(text) ?? {};
  const other = [node, peer].find((name) => name !== config.name);
  if (other === undefined || (node !== config.name && peer !== config.name)) return undefined;
  const statuses = device.ports();
  const place =
    config.kind === "switch" ? config.ports.findIndex(({ name }) => name === other) : other === kNetwork ? 0 : -1;
  const status = statuses[place];
  if (status === undefined) return undefined;
  const xdp = status.xdp_mode === null ? "" : ` (${status.xdp_mode})`;
  const facts = [
    { name: "network interface", value: status.interface },
    { name: "MAC", value: status.mac },
    { name: "rate", value: status.rate === 0 ? "unlimited" : formatRate(status.rate) },
    { name: "MTU", value: String(status.mtu) },
    { name: "backend", value: `${status.receive}${xdp} in, ${status.transmit} out: ${status.backend_reason}` },
    { name: "PFC", value: status.pfc },
  ];
  const title = `port ${status.name} of ${config.name}`;
  if (config.kind === "nic") {
    const up = { name: "interface", value: status.up ? "up" : "down or gone" };
    return { title, facts: [...facts, up], counters: countersOf(device.counted(), { device: config.name }, "qpn") };
  }
  const state = device.switchReport().ports[place];
  return {
    title,
    facts: [...facts, ...(state === undefined ? [] : switchPortFacts(state))],
    counters: countersOf(device.counted(), { switch: config.name, port: other }),
  };
}

export function inspectDeviceQueuePair(config: DeviceConfig, device: Device, name: string): Inspection | undefined {
  if (config.kind !== "nic") return undefined;
  const pair = device.queuePairs().find((candidate) => candidate.name === name);
  if (pair === undefined) return undefined;
  return {
    title: `queue pair ${name}`,
    facts: [
      { name: "to", value: pair.peer },
      { name: "priority", value: String(pair.priority) },
      ...queuePairFacts(pair, pair.alpha, 1),
    ],
    counters: countersOf(device.counted(), { flow: name }),
  };
}
