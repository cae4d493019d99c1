/** One port or queue pair in full. */
import { formatRate, formatSize } from "../base/units.js";
import type { QueuePairReport } from "../device/protocol.js";
import type { CounterTable } from "../native/counters.js";
import type { SwitchState } from "../native/types.js";
import type { Inspection } from "./protocol.js";

type Facts = Inspection["facts"];

/** "NODE:PEER"; names have no colons. */
export function portOf(text: string): { node: string; peer: string } | undefined {
  const [node, peer, ...more] = text.split(":");
  return node === undefined || peer === undefined || more.length > 0 ? undefined : { node, peer };
}

/** Those whose labels include `labels`, and have none of `without`. */
export function countersOf(
  table: CounterTable,
  labels: Readonly<Record<string, string>>,
  without?: string,
): Inspection["counters"] {
  const wanted = Object.entries(labels);
  return [...table.entries()]
    .filter(({ description }) => wanted.every(([key, value]) => description.labels[key] === value))
    .filter(({ description }) => without === undefined || description.labels[without] === undefined)
    .map(({ description: { name, unit, labels: own }, value }) => ({ name, unit, labels: own, value }));
}

/** `scale`: rates on the wire are divided by it. */
export function queuePairFacts(
  pair: Omit<QueuePairReport, "alpha" | "peer" | "priority">,
  alpha: number | null,
  scale: number,
): Facts {
  const rate = (wire: number) => formatRate(wire * scale, 4);
  return [
    { name: "number", value: `0x${pair.qpn.toString(16)}` },
    { name: "number at the peer", value: `0x${pair.remote_qpn.toString(16)}` },
    { name: "state", value: pair.state },
    { name: "limited by the reaction point", value: pair.limited ? "yes" : "no" },
    { name: "rate", value: rate(pair.rate) },
    { name: "target rate", value: rate(pair.target_rate) },
    ...(alpha === null ? [] : [{ name: "alpha", value: alpha.toFixed(4) }]),
    { name: "stage", value: pair.stage.replaceAll("_", " ") },
  ];
}

/** Of a switch's port; queues that are empty are left out. */
export function switchPortFacts(port: SwitchState["ports"][number]): Facts {
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
