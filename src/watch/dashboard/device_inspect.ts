/** Ports and queue pairs of a daemon. */
import { formatRate } from "../../base/units.js";
import type { Device } from "../../device/device.js";
import type { DeviceConfig } from "../../device/file/load.js";
import { kNetwork } from "./device_session.js";
import { inspectPair, inspectPort, portOf } from "./inspect.js";
import type { Inspection } from "./protocol.js";

/** The one port between the device and its neighbour, whichever of the two is named first. */
export function inspectDevicePort(config: DeviceConfig, device: Device, text: string): Inspection | undefined {
  const { node, peer } = portOf(text) ?? {};
  const other = [node, peer].find((name) => name !== config.name);
  if (other === undefined || (node !== config.name && peer !== config.name)) return undefined;
  const statuses = device.ports();
  const status =
    config.kind === "switch"
      ? statuses.find(({ name }) => name === other)
      : other === kNetwork
        ? statuses[0]
        : undefined;
  if (status === undefined) return undefined;
  const xdp = status.xdp_mode === null ? "" : ` (${status.xdp_mode})`;
  return inspectPort(device, other, `port ${status.name} of ${config.name}`, [
    { name: "network interface", value: status.interface },
    { name: "MAC", value: status.mac },
    { name: "rate", value: status.rate === 0 ? "unlimited" : formatRate(status.rate) },
    { name: "MTU", value: String(status.mtu) },
    { name: "backend", value: `${status.receive}${xdp} in, ${status.transmit} out: ${status.backend_reason}` },
    { name: "PFC", value: status.pfc },
    ...(config.kind === "nic" ? [{ name: "interface", value: status.up ? "up" : "down or gone" }] : []),
  ]);
}

export function inspectDeviceQueuePair(config: DeviceConfig, device: Device, name: string): Inspection | undefined {
  const pair = config.kind === "nic" ? config.queue_pairs.find((candidate) => candidate.name === name) : undefined;
  return pair && inspectPair(device, name, `queue pair ${name}`, [{ name: "to", value: pair.peer.name }]);
}
