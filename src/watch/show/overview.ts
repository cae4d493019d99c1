/** Weir's own tables that switches and NICs have in common: counters, PFC, ECN. */

import { type Meaning, reasonOf } from "../../native/counters.js";
import { fixed, printable } from "../../result/report/format.js";
import type { Grid } from "../../result/report/table.js";
import { ShownCounters, text } from "./counts.js";
import { pfcHead, pfcRows } from "./sonic.js";
import { gridView } from "./view.js";

export const counters = gridView({
  description: "frames, bytes and drops of each port",
  of: "any",
  requests: ["counters", "ports"],
  grids({ counters, ports }) {
    const own = new ShownCounters(counters);
    if (own.isNic) return [nicGrid(own)];
    const lost = (...meanings: Meaning[]) => own.of(...meanings).by("port");
    const [dropped, overrun, unsent] = [lost("drop"), lost("overrun"), lost("down", "refused", "thrown")];
    const reasons = [own.of("drop"), own.of("overrun", "refused", "thrown"), own.of("down")].flatMap((some) => [
      ...some,
    ]);
    return [
      {
        title: "Counters",
        head: ["IFACE", "STATE", "RX_OK", "RX_BYTES", "RX_DRP", "RX_OVR", "TX_OK", "TX_BYTES", "TX_DRP", "FLOOD"],
        names: 2,
        rows: ports.map(({ name, up }) => {
          const of = (counter: string) => text(own.get(counter, { port: name }));
          return [
            printable(name),
            up ? "U" : "D",
            of("rx_packets"),
            of("rx_bytes"),
            text(dropped.get(name)?.sum() ?? 0),
            text(overrun.get(name)?.sum() ?? 0),
            of("tx_packets"),
            of("tx_bytes"),
            text(unsent.get(name)?.sum() ?? 0),
            of("flood_copies"),
          ];
        }),
      },
      {
        title: "Drops",
        head: ["IFACE", "REASON", "PACKETS"],
        names: 2,
        rows: reasons
          .filter(({ value }) => value > 0)
          .map(({ name, labels, value }) => [printable(labels.port ?? ""), reasonOf(name), text(value)]),
      },
    ];
  },
});

function nicGrid(own: ShownCounters): Grid {
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
    const own = new ShownCounters(counters);
    const byPriority = (title: string, first: string, meaning: Meaning, show = text) => ({
      ...{ title, head: pfcHead(first), names: 1 },
      rows: pfcRows(own, ports, meaning, show),
    });
    return [
      byPriority("PFC frames received: the neighbour is backed up", "Port Rx", "pause_rx"),
      byPriority("PFC frames sent: this port's ingress is backed up", "Port Tx", "pause_tx"),
      byPriority("Time paused by the neighbour, ms", "Port Rx", "paused", (ns) => fixed(ns / 1e6)),
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
    const own = new ShownCounters(counters);
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
    const own = new ShownCounters(counters);
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
