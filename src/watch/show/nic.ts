/** Weir's own tables of NICs: queue pairs, reaction points. */
import { formatRate, formatSize, formatTime } from "../../base/units.js";
import type { ProgramIdentity } from "../../device/protocol.js";
import { reasonOf } from "../../native/counters.js";
import { fixed, gbps, printable } from "../../result/report/format.js";
import { ShownCounters, text } from "./counts.js";
import { gridView } from "./view.js";

/** A program of another pid namespace is not to be seen from the daemon's. */
const pidOf = ({ pid }: ProgramIdentity) => (pid === 0 ? "?" : String(pid));

export const rp = gridView({
  description: "reaction points of a NIC under QCN: rates by queue pair, parameters by priority, CNMs, time limited",
  of: "nic",
  requests: ["counters", "queue_pairs", "reaction_points"],
  grids({ counters, queue_pairs, reaction_points }) {
    const own = new ShownCounters(counters);
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
          (pair.limited && pair.stage) || "-",
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
        title: "Reaction point groups",
        head: [
          "prio",
          "variant",
          "MaxRps",
          "TimeReset",
          "ByteReset",
          "Threshold",
          "AiRate",
          "HaiRate",
          "MaxRate",
          "MinRate",
          "Gd",
          "MinDecFac",
        ],
        names: 2,
        rows: reaction_points.map((group) => [
          String(group.priority),
          group.variant,
          text(group.most),
          formatTime(group.rpgTimeReset),
          formatSize(group.rpgByteReset),
          String(group.rpgThreshold),
          formatRate(group.rpgAiRate),
          formatRate(group.rpgHaiRate),
          group.rpgMaxRate === 0 ? "port" : formatRate(group.rpgMaxRate),
          formatRate(group.rpgMinRate),
          `1/${Math.round(1 / group.gd)}`,
          `${group.rpgMinDecFac * 100}%`,
        ]),
      },
      {
        title: "CNMs",
        head: ["what became of them", "CNMs"],
        names: 1,
        rows: Object.entries({ rp_cnm_handled: own.get("rp_cnm_handled", {}), ...own.of("cnm_refused").byName() })
          .filter(([, value]) => value > 0)
          .map(([name, value]) => [reasonOf(name), text(value)]),
      },
    ];
  },
});

export const qp = gridView({
  description: "queue pairs: whose they are, rate, target rate, window, alpha",
  of: "nic",
  requests: ["queue_pairs"],
  grids: ({ queue_pairs }) => [
    {
      title: "Queue pairs",
      head: [
        "name",
        "pid",
        "type",
        "lqpn",
        "rqpn",
        "peer",
        "state",
        "stage",
        "rate Gb/s",
        "target Gb/s",
        "cwnd",
        "alpha",
      ],
      names: 8,
      rows: queue_pairs.map((pair) => [
        printable(pair.name),
        pair.program === null ? "-" : pidOf(pair.program),
        pair.direct ? `${pair.transport} direct` : pair.transport,
        String(pair.qpn),
        String(pair.remote_qpn),
        printable(pair.peer),
        pair.qp_state ?? pair.state,
        (pair.limited && pair.stage) || "-",
        // There is no reaction point until it sends.
        ...(pair.rate === 0
          ? ["-", "-", "-", "-"]
          : [
              gbps(pair.rate),
              gbps(pair.target_rate),
              pair.window === null ? "-" : fixed(pair.window),
              pair.alpha?.toFixed(4) ?? "-",
            ]),
      ]),
    },
  ],
});

export const programs = gridView({
  description: "programs that use a NIC: who they are, queue pairs, traffic, drops",
  of: "nic",
  requests: ["programs"],
  grids: ({ programs }) => [
    {
      title: "Programs",
      head: ["pid", "command", "uid", "qp", "TX pkts", "TX bytes", "RX pkts", "RX bytes", "busy", "refused"],
      names: 2,
      rows: programs.map((program) => [
        pidOf(program),
        printable(program.command || "-"),
        String(program.uid),
        String(program.queue_pairs),
        text(program.tx_packets),
        text(program.tx_bytes),
        text(program.rx_packets),
        text(program.rx_bytes),
        text(program.drop_program_busy),
        text(program.drop_program_packet),
      ]),
    },
  ],
});
