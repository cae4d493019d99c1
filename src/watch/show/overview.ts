/** Weir's own tables of what switches and NICs have in common: counters, PFC, ECN. */

import type { CounterValue } from "../../device/protocol.js";
import { fixed, printable } from "../../result/report/format.js";
import type { Grid } from "../../result/report/table.js";
import { Counts, kPfc, text } from "./counts.js";
import { pfcHead, pfcRows } from "./sonic.js";
import { gridView } from "./view.js";

export const counters = gridView({
  description: "frames, bytes and drops of each port",
  of: "any",
  requests: ["counters", "ports"],
  grids({ counters, ports }) {
    const own = new Counts(counters.counters);
    if (own.isNic) return [nicGrid(own)];
    const reasons = ["drop_", "host_", "tx_port_down"].flatMap((prefix) => own.matching(prefix, {}));
    return [
      {
        title: "Counters",
        head: ["IFACE", "STATE", "RX_OK", "RX_BYTES", "RX_DRP", "RX_OVR", "TX_OK", "TX_BYTES", "TX_DRP", "FLOOD"],
        names: 2,
        rows: ports.map(({ name, up }) => {
          const of = (counter: string) => text(own.get(counter, { port: name }));
          const lost = (...prefixes: string[]) =>
            text(prefixes.reduce((sum, prefix) => sum + total(own.matching(prefix, { port: name })), 0));
          return [
            printable(name),
            up ? "U" : "D",
            of("rx_packets"),
            of("rx_bytes"),
            lost("drop_"),
            lost("host_rx_"),
            of("tx_packets"),
            of("tx_bytes"),
            lost("tx_port_down", "host_tx_errors"),
            of("flood_copies"),
          ];
        }),
      },
      {
        title: "Drops",
        head: ["IFACE", "REASON", "PACKETS"],
        names: 2,
        rows: reasons
          .filter(({ name, value }) => value > 0 && name !== "host_tx_live")
          .map(({ name, labels, value }) => [printable(labels.port ?? ""), name.replace(/^drop_/, ""), text(value)]),
      },
    ];
  },
});

const total = (counters: readonly CounterValue[]) => counters.reduce((sum, { value }) => sum + value, 0);

function nicGrid(own: Counts): Grid {
  const rows = own.ofNic();
  return {
    title: `link ${printable(rows[0]?.labels.device ?? "")}/1`,
    head: ["counter", "value", "unit"],
    names: 1,
    rows: rows.map(({ name, value, unit }) => [name, text(value), unit]),
  };
}

export const pfc = gridView({
  description: "PFC frames by priority, and time paused",
  of: "any",
  requests: ["counters", "ports"],
  grids({ counters, ports }) {
    const own = new Counts(counters.counters);
    const byPriority = (title: string, first: string, names: Parameters<typeof pfcRows>[2], show = text) => ({
      ...{ title, head: pfcHead(first), names: 1 },
      rows: pfcRows(own, ports, names, show),
    });
    return [
      byPriority("PFC frames received: the neighbour is backed up", "Port Rx", kPfc.received),
      byPriority("PFC frames sent: this port's ingress is backed up", "Port Tx", kPfc.sent),
      byPriority("Time paused by the neighbour, ms", "Port Rx", kPfc.paused, (ns) => fixed(ns / 1e6)),
      {
        title: "Ports where PFC does not work",
        head: ["Port", "PFC", "Why"],
        names: 3,
        rows: ports
          .filter(({ pfc }) => pfc !== "works")
          .map(({ name, pfc, mac_control }) => [printable(name), pfc, pfc === "off" ? "-" : mac_control.reason]),
      },
    ];
  },
});

const kFeedback = ["np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored", "rp_cur_flows"];

export const ecn = gridView({
  description: "ECN marks of the egress queues, or CNPs of a NIC",
  of: "any",
  requests: ["counters"],
  grids({ counters }) {
    const own = new Counts(counters.counters);
    if (own.isNic) {
      const row = kFeedback.map((name) => text(own.get(name, {})));
      return [{ title: "Congestion control", head: kFeedback, names: 0, rows: [row] }];
    }
    return [
      {
        title: "ECN",
        head: ["Port", "TxQ", "EcnMarked/pkts", "Counter/pkts", "Marked"],
        names: 2,
        rows: own.queues().map(({ port, priority }) => {
          const marked = own.get("wred_ecn_marked_packets", { port, priority });
          const packets = own.get("queue_packets", { port, priority });
          const share = packets === 0 ? "0.00%" : `${((100 * marked) / packets).toFixed(2)}%`;
          return [printable(port), `UC${priority}`, text(marked), text(packets), share];
        }),
      },
    ];
  },
});

export const telemetry = gridView({
  description: "in-band network telemetry (INT): what ports have written, what senders have got back",
  of: "any",
  requests: ["counters", "ports"],
  grids({ counters, ports }) {
    const own = new Counts(counters.counters);
    const of = (port: string, names: readonly string[]) =>
      names.map((name) => text(own.get(name, own.isNic ? {} : { port })));
    return [
      {
        title: own.isNic ? "INT in acknowledgements" : "INT written",
        head: ["IFACE", ...(own.isNic ? kEchoed : kWritten).keys()],
        names: 1,
        rows: ports.map(({ name }) => [printable(name), ...of(name, [...(own.isNic ? kEchoed : kWritten).values()])]),
      },
    ];
  },
});

const kWritten = new Map([
  ["WRITTEN", "int_written"],
  ["NO_ROOM", "int_overflowed"],
  ["MALFORMED", "int_malformed"],
]);
const kEchoed = new Map([
  ["RECEIVED", "rx_telemetry"],
  ["UNWRITTEN", "rx_telemetry_unwritten"],
  ["NO_ROOM", "rx_telemetry_overflowed"],
  ["MALFORMED", "rx_telemetry_malformed"],
]);
