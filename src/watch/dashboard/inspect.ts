/** One port or queue pair in full. */

import { formatRate, formatSize } from "../../base/units.js";
import type { Device } from "../../device/device.js";
import type { Counters } from "../../native/counters.js";
import type { SwitchState } from "../../native/types.js";
import type { Inspection } from "./protocol.js";

type Facts = Inspection["facts"];

/** Parses "NODE:PEER"; names have no colons. */
export function portOf(text: string): { node: string; peer: string } | undefined {
  const [node, peer, ...more] = text.split(":");
  return node === undefined || peer === undefined || more.length > 0 ? undefined : { node, peer };
}

const listOf = (counters: Counters): Inspection["counters"] =>
  Array.from(counters, ({ name, unit, labels, value }) => ({ name, unit, labels, value }));

/** Inspects a port of a device. @param facts Further facts about it. */
export function inspectPort(device: Device, port: string, title: string, facts: Facts): Inspection {
  const table = device.counted();
  if (device.kind === "nic")
    return { title, facts, counters: listOf(table.at({ device: device.name, qpn: undefined })) };
  const state = device.switchReport().ports.find(({ name }) => name === port);
  const counters = listOf(table.at({ switch: device.name, port }));
  return { title, facts: [...facts, ...(state === undefined ? [] : switchPortFacts(state))], counters };
}

/** Inspects a queue pair of a NIC; counters are also of its other end, where that is counted too. @param ends Facts about its two ends. */
export function inspectPair(device: Device, name: string, title: string, ends: Facts): Inspection | undefined {
  const pair = device.queuePairs().find((candidate) => candidate.name === name);
  if (pair === undefined) return undefined;
  const facts = [
    ...ends,
    { name: "priority", value: String(pair.priority) },
    { name: "number", value: `0x${pair.qpn.toString(16)}` },
    { name: "number at the peer", value: `0x${pair.remote_qpn.toString(16)}` },
    { name: "state", value: pair.state },
    { name: "limited by the reaction point", value: pair.limited ? "yes" : "no" },
    { name: "rate", value: formatRate(pair.rate, 4) },
    { name: "target rate", value: formatRate(pair.target_rate, 4) },
    ...(pair.alpha === null ? [] : [{ name: "alpha", value: pair.alpha.toFixed(4) }]),
    ...(pair.stage === null ? [] : [{ name: "stage", value: pair.stage.replaceAll("_", " ") }]),
  ];
  return { title, facts, counters: listOf(device.counted().at({ flow: name })) };
}

/** Facts of a switch's port; queues that are empty are left out. */
function switchPortFacts(port: SwitchState["ports"][number]): Facts {
  const byPriority = (name: string, bytes: readonly number[]) =>
    bytes.flatMap((value, priority) =>
      value === 0 ? [] : [{ name: `${name}, priority ${priority}`, value: formatSize(value) }],
    );
  return [
    { name: "interface", value: port.up ? "up" : "down or gone" },
    { name: "paused by the peer", value: priorities(port.paused) },
    { name: "pauses the peer", value: priorities(port.pausing) },
    ...byPriority("queued", port.queue_bytes),
    ...byPriority("held of what came in", port.ingress_bytes),
    ...byPriority("of that in the headroom", port.headroom_bytes),
  ];
}

function priorities(mask: number): string {
  const some = [0, 1, 2, 3, 4, 5, 6, 7].filter((p) => (mask >> p) & 1);
  return some.length === 0 ? "no" : `priority ${some.join(", ")}`;
}
