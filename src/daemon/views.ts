/** What `weir show` prints: answers of a daemon as tables in the shapes of SONiC, dcb and rdma. */
import { formatRate } from "../config/units.js";
import { fixed, gbps, kilobytes, printable } from "../report/format.js";
import type { Grid } from "../report/table.js";
import { describeKind, describeXdp, offloadsOn, type PortProbe } from "./port_probe.js";
import type { ControlRequests, CounterValue } from "./protocol.js";

type Request = keyof ControlRequests;
/** The answers that a view has asked for. */
type Answers<Names extends Request> = { [Name in Names]: ControlRequests[Name] };

export interface View {
  /** What it shows, for help. */
  description: string;
  requests: readonly Request[];
  grids(answers: Answers<Request>): Grid[];
}

const view = <const Names extends readonly Request[]>(
  description: string,
  requests: Names,
  grids: (answers: Answers<Names[number]>) => Grid[],
): View => ({ description, requests, grids });

const kPriorities = ["0", "1", "2", "3", "4", "5", "6", "7"];

export const kViews = {
  counters: view("frames, bytes and drops of each port", ["counters", "ports"], ({ counters, ports }) => {
    const own = new Counts(counters.counters);
    if (own.isNic) return [endpointGrid(own)];
    return [
      {
        title: "Counters",
        head: ["IFACE", "STATE", "RX_OK", "RX_BYTES", "RX_DRP", "TX_OK", "TX_BYTES", "FLOOD"],
        names: 2,
        rows: ports.map(({ name, up }) => {
          const of = (counter: string) => text(own.get(counter, { port: name }));
          const drops = own.matching("drop_", { port: name }).reduce((sum, { value }) => sum + value, 0);
          return [
            printable(name),
            up ? "U" : "D",
            of("rx_packets"),
            of("rx_bytes"),
            text(drops),
            of("tx_packets"),
            of("tx_bytes"),
            of("flood_copies"),
          ];
        }),
      },
      {
        title: "Drops",
        head: ["IFACE", "REASON", "PACKETS"],
        names: 2,
        rows: own
          .matching("drop_", {})
          .filter(({ value }) => value > 0)
          .map(({ name, labels, value }) => [printable(labels.port ?? ""), name.slice("drop_".length), text(value)]),
      },
    ];
  }),

  pfc: view("PFC frames by priority, and time paused", ["counters", "ports"], ({ counters, ports }) => {
    const own = new Counts(counters.counters);
    const [received, sent, paused] = own.isNic
      ? (["rx_prio_pause", "tx_prio_pause", "rx_prio_pause_duration"] as const)
      : (["pfc_rx_packets", "pfc_tx_packets", "pfc_rx_pause_duration"] as const);
    const table = (title: string, head: string, counter: string, show: (value: number) => string): Grid => ({
      title,
      head: [head, ...kPriorities.map((p) => `PFC${p}`)],
      names: 1,
      rows: ports.map(({ name }) => [
        printable(name),
        ...kPriorities.map((priority) => show(own.get(counter, own.isNic ? { priority } : { port: name, priority }))),
      ]),
    });
    return [
      table("PFC frames received: the neighbour is backed up", "Port Rx", received, text),
      table("PFC frames sent: this port's ingress is backed up", "Port Tx", sent, text),
      table("Time paused by the neighbour, ms", "Port Rx", paused, (ns) => fixed(ns / 1e6)),
      {
        title: "Ports where PFC does not work",
        head: ["Port", "PFC", "Why"],
        names: 3,
        rows: ports
          .filter(({ pfc }) => pfc !== "works")
          .map(({ name, pfc, mac_control }) => [printable(name), pfc, pfc === "off" ? "-" : mac_control.reason]),
      },
    ];
  }),

  ecn: view("ECN marks of the egress queues, or CNPs of a NIC", ["counters"], ({ counters }) => {
    const own = new Counts(counters.counters);
    if (own.isNic) {
      const names = ["np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored", "rp_cur_flows"];
      return [
        { title: "Congestion control", head: names, names: 0, rows: [names.map((name) => text(own.get(name, {})))] },
      ];
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
  }),

  cp: view(
    "congestion points of a switch: queue, set point, CNMs",
    ["counters", "switch"],
    ({ counters, switch: { qcn, ports } }) => {
      const own = new Counts(counters.counters);
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
  ),

  rp: view(
    "reaction points of a NIC under QCN: rates by queue pair, CNMs, time limited",
    ["counters", "queue_pairs"],
    ({ counters, queue_pairs }) => {
      const own = new Counts(counters.counters);
      const cnms = own.matching("rp_cnm_", {}).filter(({ labels }) => labels.qpn === undefined);
      const priorities = [...new Set(queue_pairs.map(({ priority }) => String(priority)))].sort();
      return [
        {
          title: "Rates",
          head: ["name", "prio", "limited", "stage", "rate Gb/s", "target Gb/s"],
          names: 1,
          rows: queue_pairs.map((pair) => [
            printable(pair.name),
            String(pair.priority),
            pair.limited ? "yes" : "no",
            pair.limited ? pair.stage : "-",
            gbps(pair.rate),
            gbps(pair.target_rate),
          ]),
        },
        {
          title: "Reaction points",
          head: ["prio", "began to limit", "limited s"],
          names: 1,
          rows: priorities.map((priority) => [
            priority,
            text(own.get("rp_port_pri_created_rps", { priority })),
            fixed(own.get("rp_port_pri_centiseconds", { priority }) / 100),
          ]),
        },
        {
          title: "CNMs",
          head: ["what became of them", "CNMs"],
          names: 1,
          rows: cnms
            .filter(({ value }) => value > 0)
            .map(({ name, value }) => [name.slice("rp_cnm_".length), text(value)]),
        },
      ];
    },
  ),

  queue: view(
    "egress queues: counters, occupancy, watermark",
    ["counters", "switch"],
    ({ counters, switch: state }) => {
      const own = new Counts(counters.counters);
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
  ),

  buffer: view("shared buffer and ingress priority groups", ["counters", "switch"], ({ counters, switch: state }) => {
    const own = new Counts(counters.counters);
    const { buffer } = state;
    return [
      {
        title: `Buffer pool of ${printable(state.name)}, KB`,
        head: ["Total", "Occupied", "Shared", "t_PFC"],
        names: 0,
        rows: [[buffer.total, buffer.occupied, buffer.shared, buffer.pfc_threshold].map(kilobytes)],
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
  }),

  qp: view("queue pairs: rate, target rate, alpha", ["queue_pairs"], ({ queue_pairs }) => [
    {
      title: "Queue pairs",
      head: ["name", "lqpn", "rqpn", "peer", "state", "stage", "rate Gb/s", "target Gb/s", "alpha"],
      names: 6,
      rows: queue_pairs.map((pair) => [
        printable(pair.name),
        String(pair.qpn),
        String(pair.remote_qpn),
        printable(pair.peer),
        pair.state,
        pair.limited ? pair.stage : "-",
        gbps(pair.rate),
        gbps(pair.target_rate),
        pair.alpha?.toFixed(4) ?? "-",
      ]),
    },
  ]),

  fdb: view("forwarding table", ["fdb"], ({ fdb }) => [
    {
      title: `Forwarding table, ${fdb.length} entries`,
      head: ["Vlan", "MacAddress", "Port", "Type", "Ages in s"],
      names: 4,
      rows: fdb.map((entry) => [
        entry.vlan === 0 ? "-" : String(entry.vlan),
        entry.mac,
        entry.ports.map(printable).join(","),
        entry.kind === "learned" ? "Dynamic" : "Static",
        entry.expires_in_s === null ? "-" : entry.expires_in_s.toFixed(0),
      ]),
    },
  ]),

  ports: view("interfaces behind the ports, what they can do, and how they are used", ["ports"], ({ ports }) => [
    {
      title: "Ports",
      head: ["Port", "Interface", "Namespace", "Oper", "Address", "Recoveries", "Speed Gb/s", "MTU"],
      names: 5,
      rows: ports.map((port) => [
        printable(port.name),
        printable(port.interface),
        printable(port.namespace ?? "-"),
        port.up ? "up" : "down",
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
      rows: ports.map(({ name, receive, transmit, xdp_mode, backend_reason }) => [
        printable(name),
        xdp_mode === null ? receive : `${receive} (${xdp_mode})`,
        transmit,
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
  ]),
} as const satisfies Record<string, View>;

export type ViewName = keyof typeof kViews;

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

/** Counters of one daemon by name and labels. */
class Counts {
  constructor(private readonly counters: readonly CounterValue[]) {}

  get isNic(): boolean {
    return this.counters.some(({ labels }) => labels.device !== undefined);
  }

  get(name: string, labels: Readonly<Record<string, string>>): number {
    // Of a NIC and of its queue pairs there are counters of the same name: as many labels as asked for, and its own.
    const own = this.isNic ? 1 : 2;
    const wanted = own + Object.keys(labels).filter((key) => key === "priority").length;
    const found = this.counters.find(
      (counter) =>
        counter.name === name &&
        Object.keys(counter.labels).length === wanted &&
        Object.entries(labels).every(([key, value]) => counter.labels[key] === value),
    );
    return found?.value ?? 0;
  }

  matching(prefix: string, labels: Readonly<Record<string, string>>): CounterValue[] {
    return this.counters.filter(
      ({ name, labels: own }) =>
        name.startsWith(prefix) && Object.entries(labels).every(([key, value]) => own[key] === value),
    );
  }

  /** Ports and priorities where `counter` has counted anything. */
  queues(counter = "queue_packets"): { port: string; priority: string }[] {
    return this.counters
      .filter(({ name, value }) => name === counter && value > 0)
      .map(({ labels }) => ({ port: labels.port ?? "", priority: labels.priority ?? "" }));
  }
}

/** The shape of `rdma statistic show link`, one counter to a line. */
function endpointGrid(own: Counts): Grid {
  const rows = own.matching("", {}).filter(({ labels }) => Object.keys(labels).length === 1);
  const device = rows[0]?.labels.device ?? "";
  return {
    title: `link ${printable(device)}/1`,
    head: ["counter", "value", "unit"],
    names: 1,
    rows: rows.map(({ name, value, unit }) => [name, text(value), unit]),
  };
}

function text(value: number): string {
  return String(Math.round(value));
}
