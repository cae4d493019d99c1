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
      rows: ports.map(({ name, receive, transmit, tx_falls_back, xdp_mode, backend_reason }) => [
        printable(name),
        xdp_mode === null ? receive : `${receive} (${xdp_mode})`,
        tx_falls_back ? `${transmit} (by ${receive} now)` : transmit,
        printable(backend_reason),
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
