/** Tables under the names and headings of SONiC's `show`, for who reads or parses those. */

import type { FdbEntry, PortStatus } from "../../device/protocol.js";
import type { Meaning } from "../../native/counters.js";
import { printable } from "../../result/report/format.js";
import { kPriorityKeys } from "../../wire/priority.js";
import { ShownCounters, text } from "./counts.js";
import { kNotAvailable, tabulate, withCommas } from "./tabulate.js";
import { type Answers, textView } from "./view.js";

/** One row per port, one column per priority: the table of SONiC's pfcstat. */
export function pfcRows(
  own: ShownCounters,
  ports: readonly PortStatus[],
  meaning: Meaning,
  show: (value: number) => string,
) {
  const of = own.ofPriorities(meaning);
  return ports.map(({ name }) => [printable(name), ...kPriorityKeys.map((priority) => show(of(name, priority)))]);
}

export const pfcHead = (first: string) => [first, ...kPriorityKeys.map((p) => `PFC${p}`)];

const pfcCounters = textView({
  description: "PFC frames received and sent, by port and priority",
  of: "any",
  requests: ["counters", "ports"],
  text({ counters, ports }) {
    const own = new ShownCounters(counters);
    return [
      tabulate(pfcHead("Port Rx"), pfcRows(own, ports, "pause_rx", withCommas)),
      tabulate(pfcHead("Port Tx"), pfcRows(own, ports, "pause_tx", withCommas)),
    ].join("\n");
  },
  json({ counters, ports }) {
    const own = new ShownCounters(counters);
    const byPort = (meaning: Meaning) => {
      const of = own.ofPriorities(meaning);
      return Object.fromEntries(
        ports.map(({ name }) => [name, Object.fromEntries(kPriorityKeys.map((p) => [`PFC${p}`, of(name, p)]))]),
      );
    };
    return { "Port Rx": byPort("pause_rx"), "Port Tx": byPort("pause_tx") };
  },
});

const pfcPriority = textView({
  description: "priorities that PFC keeps without loss",
  of: "any",
  requests: ["qos", "ports"],
  text({ qos, ports }) {
    const lossless = qos.pfc_priorities.length === 0 ? kNotAvailable : qos.pfc_priorities.join(",");
    return tabulate(
      ["Interface", "Lossless priorities"],
      ports.map(({ name }) => [printable(name), lossless]),
      0,
    );
  },
  json: ({ qos, ports }) => Object.fromEntries(ports.map(({ name }) => [name, qos.pfc_priorities])),
});

/** Columns of a queue: heading and key are SONiC's, `of` is the counter; undefined: not counted here. */
type QueueColumns = readonly { head: string; key: string; of?: string }[];

const kCounterColumns: QueueColumns = [
  { head: "Counter/pkts", key: "totalpacket", of: "queue_packets" },
  { head: "Counter/bytes", key: "totalbytes", of: "queue_bytes" },
  // Dropped frames are counted where they came in.
  { head: "Drop/pkts", key: "droppacket" },
  { head: "Drop/bytes", key: "dropbytes" },
];

const kWredColumns: QueueColumns = [
  // RED marks here, and never drops.
  { head: "WredDrp/pkts", key: "wreddroppacket" },
  { head: "WredDrp/bytes", key: "wreddropbytes" },
  { head: "EcnMarked/pkts", key: "ecnmarkedpacket", of: "wred_ecn_marked_packets" },
  { head: "EcnMarked/bytes", key: "ecnmarkedbytes" },
];

const queueView = (description: string, columns: QueueColumns) =>
  textView({
    description,
    of: "switch",
    requests: ["counters", "ports"],
    text({ counters, ports }) {
      const own = new ShownCounters(counters);
      const head = ["Port", "TxQ", ...columns.map((column) => column.head)];
      return ports
        .map(({ name }) =>
          tabulate(
            head,
            kPriorityKeys.map((priority) => [
              printable(name),
              `UC${priority}`,
              ...columns.map(({ of }) => cell(own, name, priority, of)),
            ]),
          ),
        )
        .join("\n");
    },
    json({ counters, ports }) {
      const own = new ShownCounters(counters);
      const queue = (port: string, priority: string) =>
        Object.fromEntries(columns.map(({ key, of }) => [key, cell(own, port, priority, of)]));
      return Object.fromEntries(
        ports.map(({ name }) => [name, Object.fromEntries(kPriorityKeys.map((p) => [`UC${p}`, queue(name, p)]))]),
      );
    },
  });

function cell(own: ShownCounters, port: string, priority: string, of: string | undefined): string {
  return of === undefined ? kNotAvailable : text(own.get(of, { port, priority }));
}

/** Shows one row per port, one column per queue or priority group, under a line of its own. @param rowsInJson As watermarkstat has them. */
const countView = (description: string, title: string, prefix: "UC" | "PG", counter: string, rowsInJson = true) => {
  const head = ["Port", ...kPriorityKeys.map((p) => `${prefix}${p}`)];
  const rows = (own: ShownCounters, ports: readonly PortStatus[]) =>
    ports.map(({ name }) => [
      printable(name),
      ...kPriorityKeys.map((priority) => text(own.get(counter, { port: name, priority }))),
    ]);
  return textView({
    description,
    of: "switch",
    requests: ["counters", "ports"],
    text: ({ counters, ports }) => `${title}\n${tabulate(head, rows(new ShownCounters(counters), ports))}`,
    ...(rowsInJson && {
      json: ({ counters, ports }: Answers<"counters" | "ports">) =>
        rows(new ShownCounters(counters), ports).map((row) =>
          Object.fromEntries(head.map((name, i) => [name, row[i]])),
        ),
    }),
  });
};

/** A switch has one pool, for both directions; its headroom counts as well. */
export const kPool = "shared_pool";

const poolWatermark = textView({
  description: "most bytes that the shared buffer has held",
  of: "switch",
  requests: ["switch"],
  text: ({ switch: { buffer } }) =>
    `Shared pool maximum occupancy:\n${tabulate(["Pool", "Bytes"], [[kPool, text(buffer.watermark)]])}`,
  json: ({ switch: { buffer } }) => [{ [kPool]: text(buffer.watermark) }],
});

/** Cells of an entry of the forwarding table: VLAN, address, port, kind. */
export function fdbCells(entry: FdbEntry, untagged: string): string[] {
  const vlan = entry.vlan === 0 ? untagged : String(entry.vlan);
  return [vlan, entry.mac, entry.ports.map(printable).join(","), entry.kind === "learned" ? "Dynamic" : "Static"];
}

const mac = textView({
  description: "forwarding table",
  of: "switch",
  requests: ["fdb"],
  text({ fdb }) {
    const rows = [...fdb]
      .sort((a, b) => a.vlan - b.vlan)
      .map((entry, i) => {
        const [vlan = "", address = "", ...rest] = fdbCells(entry, "0");
        return [String(i + 1), vlan, address.toUpperCase(), ...rest];
      });
    return `${tabulate(["No.", "Vlan", "MacAddress", "Port", "Type"], rows, 2)}Total number of entries ${fdb.length}\n`;
  },
});

export const kSonicViews = {
  "pfc counters": pfcCounters,
  "pfc priority": pfcPriority,
  "queue counters": queueView("egress queues: packets and bytes sent", kCounterColumns),
  "queue wredcounters": queueView("egress queues: packets marked by RED", kWredColumns),
  "queue watermark": countView(
    "most bytes that each egress queue has held",
    "Egress shared pool occupancy per unicast queue:",
    "UC",
    "queue_watermark_bytes",
  ),
  "priority-group watermark headroom": countView(
    "most bytes of each priority group in its headroom",
    "Ingress headroom per PG:",
    "PG",
    "pg_xoff_room_watermark_bytes",
  ),
  "priority-group watermark shared": countView(
    "most bytes that each priority group has held",
    "Ingress shared pool occupancy per PG:",
    "PG",
    "pg_watermark_bytes",
  ),
  "priority-group drop counters": countView(
    "frames dropped for want of buffer, by port and priority group",
    "Ingress PG dropped packets:",
    "PG",
    "pg_dropped_packets",
    false,
  ),
  "buffer_pool watermark": poolWatermark,
  mac,
};
