/** Counters of each port in the shape of `ethtool -S`, under mlx5's names where it has them. */

import type { CounterValue, PortStatus } from "../../device/protocol.js";
import { printable } from "../../result/report/format.js";
import { byPort, jsonByPort } from "./by_port.js";
import { ShownCounters, text } from "./counts.js";
import { type Answers, textView } from "./view.js";

/** Names of a switch's counters by priority, which stands for %. A counter that mlx5 has no name for keeps its own. */
const kSwitchNames: Readonly<Record<string, string>> = {
  pg_packets: "rx_prio%_packets",
  pg_dropped_packets: "rx_prio%_buf_discard",
  queue_packets: "tx_prio%_packets",
  queue_bytes: "tx_prio%_bytes",
  wred_ecn_marked_packets: "tx_prio%_marked",
  pfc_rx_packets: "rx_prio%_pause",
  pfc_rx_pause_duration: "rx_prio%_pause_duration",
  pfc_rx_transitions: "rx_prio%_pause_transition",
  pfc_tx_packets: "tx_prio%_pause",
  pfc_tx_pause_duration: "tx_prio%_pause_duration",
  pfc_tx_transitions: "tx_prio%_pause_transition",
};

function nameOf({ name, labels: { priority } }: CounterValue): string {
  if (priority === undefined) return name;
  const pattern = kSwitchNames[name] ?? (name.includes("_prio_") ? name.replace("_prio_", "_prio%_") : `${name}_prio%`);
  return pattern.replace("%", priority);
}

/** Times in mlx5 are microseconds. */
const shownAs = ({ unit, value }: CounterValue) => (unit === "ns" ? value / 1000 : value);

/**
 * The port's own counters come first, then those of priority 0, 1, ... A NIC has one port: all its counters but those of queue pairs are
 * that one's.
 */
function statistics({ counters }: Answers<"counters">, port: PortStatus): [string, number][] {
  const own = new ShownCounters(counters);
  return [...own.at({ qpn: undefined, ...(!own.isNic && { port: port.name }) })]
    .sort((a, b) => Number(a.labels.priority ?? -1) - Number(b.labels.priority ?? -1))
    .map((counter) => [nameOf(counter), Number(text(shownAs(counter)))]);
}

const block = (statistic: readonly [string, number][]) =>
  `NIC statistics:\n${statistic.map(([name, value]) => `     ${printable(name)}: ${value}\n`).join("")}`;

export const ethtool = textView({
  description: "all counters of each port",
  of: "any",
  requests: ["counters", "ports"],
  text: (answers) => byPort("ethtool -S", answers.ports, (port) => block(statistics(answers, port))),
  json: (answers) => jsonByPort(answers.ports, (port) => Object.fromEntries(statistics(answers, port))),
});
