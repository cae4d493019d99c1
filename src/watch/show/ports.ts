/** Weir's own tables of ports: interfaces, what they can do, how they are used. */
import { formatRate } from "../../base/units.js";
import type { PortStatus } from "../../device/protocol.js";
import { describeKind, describeXdp, offloadsOn, type PortProbe } from "../../host/port_probe.js";
import { gbps, printable } from "../../result/report/format.js";
import { gridView } from "./view.js";

export const ports = gridView({
  description: "interfaces behind the ports, what they can do, and how they are used",
  of: "any",
  requests: ["ports"],
  grids: ({ ports }) => [
    {
      title: "Ports",
      head: ["Port", "Interface", "Namespace", "Oper", "Address", "Recoveries", "Speed Gb/s", "MTU"],
      names: 5,
      rows: ports.map((port) => [
        printable(port.name),
        printable(port.interface),
        printable(port.namespace ?? "-"),
        operation(port),
        port.mac,
        String(port.recoveries),
        port.rate === 0 ? "unlimited" : gbps(port.rate),
        port.interface_mtu === null || port.interface_mtu === port.mtu
          ? String(port.mtu)
          : `${port.mtu} (interface ${port.interface_mtu})`,
      ]),
    },
    {
      title: "Interfaces",
      head: ["Port", "Kind", "Speed", "Queues", "Rings", "XDP", "Offloads"],
      names: 7,
      rows: ports.map(({ name, probe }) => [printable(name), ...(probe === null ? kNotProbed : interfaceCells(probe))]),
    },
    {
      title: "Backends",
      head: ["Port", "In", "Out", "Why"],
      names: 4,
      rows: ports.map((port) => [
        printable(port.name),
        inWords(port.receive, port.xdp_mode ?? "", sockets(port.xdp_queues), copies(port.rx_zero_copy)),
        inWords(port.transmit, port.tx_falls_back ? `by ${port.receive} now` : "", copies(port.tx_zero_copy)),
        printable(port.backend_reason),
      ]),
    },
    {
      title: "PFC",
      head: ["Port", "PFC", "MAC control frames", "Why"],
      names: 4,
      rows: ports.map(({ name, pfc, mac_control: { reaches, reason } }) => [
        printable(name),
        pfc,
        reaches === "yes" ? "arrive" : reaches === "no" ? "do not arrive" : reaches,
        printable(reason),
      ]),
    },
  ],
});

function operation({ up, tx_stalled, rx_stuck }: PortStatus): string {
  if (!up) return "down";
  return ["up", ...(tx_stalled ? ["tx stalled"] : []), ...(rx_stuck ? ["rx stuck"] : [])].join(", ");
}

/** A backend with what is known of it in parentheses. */
function inWords(backend: string, ...known: string[]): string {
  const words = known.filter((word) => word !== "");
  return words.length === 0 ? backend : `${backend} (${words.join(", ")})`;
}

const sockets = (count: number) => (count === 0 ? "" : `${count} queue${count === 1 ? "" : "s"}`);
const copies = (zeroCopy: boolean | null) => (zeroCopy === null ? "" : zeroCopy ? "zero copy" : "copied");

const kNotProbed = ["unknown", "-", "-", "-", "-", "-"];

function interfaceCells(probe: PortProbe): string[] {
  const pair = (a: number | undefined, b: number | undefined) => (a === undefined ? "-" : `${a}/${b ?? "-"}`);
  return [
    printable(describeKind(probe)),
    probe.speed === undefined ? "-" : formatRate(probe.speed),
    pair(probe.receive_queues, probe.transmit_queues),
    pair(probe.receive_ring, probe.transmit_ring),
    describeXdp(probe),
    offloadsOn(probe)?.join(" ") ?? "unknown",
  ];
}
