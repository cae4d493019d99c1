/** Ports and queue pairs of a running lab. */
import { packageVersion } from "../../base/package_version.js";
import { formatRate, formatTime } from "../../base/units.js";
import type { LabAccess } from "../../clocks/lab/access.js";
import { labDevices } from "../../clocks/lab/devices.js";
import type { Device } from "../../device/device.js";
import { inspectPair, inspectPort, portOf } from "./inspect.js";
import type { Inspection } from "./protocol.js";

/** Inspects the port of the device `node` to `peer`. */
export function inspectLabPort(lab: LabAccess, text: string): Inspection | undefined {
  const { node, peer } = portOf(text) ?? {};
  const link = lab.scenario.links.find(
    ({ from, to }) => (from === node && to === peer) || (from === peer && to === node),
  );
  const device = deviceOf(lab, node);
  if (link === undefined || device === undefined || peer === undefined) return undefined;
  return inspectPort(device, peer, `port of ${node} to ${peer}`, [
    { name: "rate", value: link.rate === 0 ? "unlimited" : formatRate(link.rate) },
    { name: "delay", value: formatTime(link.delay) },
    { name: "MTU", value: String(link.mtu) },
  ]);
}

/** The sender's end of a flow; counters of both ends. */
export function inspectLabQueuePair(lab: LabAccess, name: string): Inspection | undefined {
  const flow = lab.scenario.flows.find(({ id }) => id === name);
  const device = deviceOf(lab, flow?.from);
  if (flow === undefined || device === undefined) return undefined;
  return inspectPair(device, name, `queue pair of ${name}`, [
    { name: "from", value: flow.from },
    { name: "to", value: flow.to },
  ]);
}

function deviceOf(lab: LabAccess, wanted: string | undefined): Device | undefined {
  const devices = labDevices(lab, { version: packageVersion(), control: "", metrics: null });
  return devices.find(({ name }) => name === wanted);
}
