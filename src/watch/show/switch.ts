/** Weir's own tables of switches: queues, buffer, congestion points, forwarding table. */

import { kilobytes, printable } from "../../result/report/format.js";
import { ShownCounters, text } from "./counts.js";
import { fdbCells } from "./sonic.js";
import { gridView } from "./view.js";

export const cp = gridView({
  description: "congestion points of a switch: queue, set point, CNMs",
  of: "switch",
  requests: ["counters", "switch"],
  grids({ counters, switch: { qcn, ports } }) {
    const own = new ShownCounters(counters);
    return [
      {
        title: `Congestion points, QCN ${qcn.enabled ? "on" : "off"}`,
        head: ["Port", "TxQ", "Occupancy/KB", "Q_eq/KB", "Frames", "CNMs", "Discarded", "Remapped", "Tags off"],
        names: 2,
        rows: ports.flatMap(({ name, queue_bytes }) =>
          (qcn.enabled ? qcn.priorities : []).map((p) => {
            const of = (counter: string) => text(own.get(counter, { port: name, priority: String(p) }));
            return [
              printable(name),
              `UC${p}`,
              kilobytes(queue_bytes[p] ?? 0),
              kilobytes(qcn.cpQSp),
              of("cn_cp_transmitted_frames"),
              of("cn_cp_transmitted_cnms"),
              of("cn_cp_discarded_frames"),
              of("cn_remapped_frames"),
              of("cn_tags_removed"),
            ];
          }),
        ),
      },
    ];
  },
});

export const queue = gridView({
  description: "egress queues: counters, occupancy, watermark",
  of: "switch",
  requests: ["counters", "switch"],
  grids({ counters, switch: state }) {
    const own = new ShownCounters(counters);
    return [
      {
        title: "Queues",
        head: ["Port", "TxQ", "Counter/pkts", "Counter/bytes", "EcnMarked/pkts", "Occupancy/KB", "Watermark/KB"],
        names: 2,
        rows: own.queues().map(({ port, priority }) => {
          const of = (name: string) => own.get(name, { port, priority });
          const now = state.ports.find(({ name }) => name === port)?.queue_bytes[Number(priority)] ?? 0;
          return [
            printable(port),
            `UC${priority}`,
            text(of("queue_packets")),
            text(of("queue_bytes")),
            text(of("wred_ecn_marked_packets")),
            kilobytes(now),
            kilobytes(of("queue_watermark_bytes")),
          ];
        }),
      },
    ];
  },
});

export const buffer = gridView({
  description: "shared buffer and ingress priority groups",
  of: "switch",
  requests: ["counters", "switch"],
  grids({ counters, switch: state }) {
    const own = new ShownCounters(counters);
    const { buffer } = state;
    return [
      {
        title: `Buffer pool of ${printable(state.name)}, KB`,
        head: ["Total", "Occupied", "Watermark", "Shared", "t_PFC"],
        names: 0,
        rows: [[buffer.total, buffer.occupied, buffer.watermark, buffer.shared, buffer.pfc_threshold].map(kilobytes)],
      },
      {
        title: "Ingress priority groups, KB",
        head: ["Port", "PG", "Occupancy", "Headroom", "Watermark", "Headroom watermark", "Dropped/pkts", "XOFF"],
        names: 2,
        rows: own.queues("pg_packets").map(({ port, priority }) => {
          const of = (name: string) => own.get(name, { port, priority });
          const now = state.ports.find(({ name }) => name === port);
          const p = Number(priority);
          return [
            printable(port),
            `PG${priority}`,
            kilobytes(now?.ingress_bytes[p] ?? 0),
            kilobytes(now?.headroom_bytes[p] ?? 0),
            kilobytes(of("pg_watermark_bytes")),
            kilobytes(of("pg_xoff_room_watermark_bytes")),
            text(of("pg_dropped_packets")),
            ((now?.pausing ?? 0) >> p) & 1 ? "yes" : "no",
          ];
        }),
      },
    ];
  },
});

export const fdb = gridView({
  description: "forwarding table, with ages, and what each port has of it",
  of: "switch",
  requests: ["fdb", "counters", "switch"],
  grids({ fdb, counters, switch: { ports } }) {
    const own = new ShownCounters(counters);
    return [
      {
        title: `Forwarding table, ${fdb.length} entries`,
        head: ["Vlan", "MacAddress", "Port", "Type", "Ages in s"],
        names: 4,
        rows: fdb.map((entry) => [
          ...fdbCells(entry, "-"),
          entry.expires_in_s === null ? "-" : entry.expires_in_s.toFixed(0),
        ]),
      },
      {
        title: "Learned addresses by port",
        head: ["Port", "Learned", "Limit", "Evicted", "Over limit", "No room"],
        names: 1,
        rows: ports.map(({ name, max_learned_addresses: limit }) => {
          const of = (counter: string) => text(own.get(counter, { port: name }));
          const learned = fdb.filter((entry) => entry.kind === "learned" && entry.ports[0] === name).length;
          return [
            printable(name),
            text(learned),
            limit === 0 ? "-" : text(limit),
            of("fdb_evicted"),
            of("fdb_limited"),
            of("fdb_full"),
          ];
        }),
      },
    ];
  },
  json: ({ fdb }) => ({ fdb }),
});
