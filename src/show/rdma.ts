/** Lines in the shape of iproute2's `rdma`: `rdma link`, `rdma res`, `rdma res show qp`, `rdma statistic`. */

import type { PortStatus, QueuePairReport, Status } from "../device/protocol.js";
import { printable } from "../report/format.js";
import { Counts, text } from "./counts.js";
import { textView } from "./view.js";

/** rdma ends every word with a blank, also the last of a line. */
const words = (values: Readonly<Record<string, string | number>>) =>
  Object.entries(values)
    .map(([name, value]) => `${name} ${value} `)
    .join("");

/** A soft NIC has one port, and its number is 1. */
const linkOf = ({ name }: Status) => `${printable(name)}/1`;

function linkState(port: PortStatus | undefined): { state: string; physical_state: string; netdev: string } {
  const up = port?.up === true;
  return {
    state: up ? "ACTIVE" : "DOWN",
    physical_state: up ? "LINK_UP" : "DISABLED",
    netdev: printable(port?.interface ?? ""),
  };
}

const link = textView({
  description: "the port of a NIC",
  of: "nic",
  joins: true,
  requests: ["status", "ports"],
  text: ({ status, ports: [port] }) => `link ${linkOf(status)} ${words(linkState(port))}\n`,
  json: ({ status, ports: [port] }) => [{ ifname: status.name, port: 1, ...linkState(port) }],
});

const res = textView({
  description: "how many queue pairs a NIC has",
  of: "nic",
  joins: true,
  requests: ["status", "queue_pairs"],
  text: ({ status, queue_pairs }, position) =>
    `${position}: ${printable(status.name)}: ${words({ qp: queue_pairs.length })}\n`,
  json: ({ status, queue_pairs }, position) => [{ ifindex: position, ifname: status.name, qp: queue_pairs.length }],
});

/** A queue pair that only receives has got no further than ready-to-receive, one that does not know its peer not so far. */
function queuePair(pair: QueuePairReport, { pid }: Status) {
  const state = { unresolved: "INIT", idle: "RTR", waiting: "RTS", ready: "RTS", finished: "RTS" }[pair.state];
  return { lqpn: pair.qpn, rqpn: pair.remote_qpn, type: "RC", state, pid };
}

const resQp = textView({
  description: "queue pairs of a NIC",
  of: "nic",
  joins: true,
  requests: ["status", "queue_pairs"],
  text: ({ status, queue_pairs }) =>
    queue_pairs.map((pair) => `link ${linkOf(status)} ${words(queuePair(pair, status))}\n`).join(""),
  json: ({ status, queue_pairs }) =>
    queue_pairs.map((pair) => ({ ifname: status.name, port: 1, ...queuePair(pair, status) })),
});

const byName = (counters: readonly { name: string; value: number }[]) =>
  Object.fromEntries(counters.map(({ name, value }) => [name, Number(text(value))]));

const statistic = textView({
  description: "counters of a NIC",
  of: "nic",
  joins: true,
  requests: ["status", "counters"],
  text: ({ status, counters }) => `link ${linkOf(status)} ${words(byName(new Counts(counters.counters).ofNic()))}\n`,
  json: ({ status, counters }) => [{ ifname: status.name, port: 1, ...byName(new Counts(counters.counters).ofNic()) }],
});

const statisticQp = textView({
  description: "counters of a NIC's queue pairs",
  of: "nic",
  joins: true,
  requests: ["status", "counters"],
  text: ({ status, counters }) =>
    [...new Counts(counters.counters).byQueuePair()]
      .map(
        ([qpn, own]) =>
          `link ${linkOf(status)} ${words({ cntn: qpn, pid: status.pid, ...byName(own) })}\n    LQPN: <${qpn}>\n`,
      )
      .join(""),
  json: ({ status, counters }) =>
    [...new Counts(counters.counters).byQueuePair()].map(([qpn, own]) => ({
      ifname: status.name,
      port: 1,
      cntn: qpn,
      pid: status.pid,
      ...byName(own),
      lqpn: [qpn],
    })),
});

export const kRdmaViews = {
  "rdma link": link,
  "rdma res": res,
  "rdma res qp": resQp,
  "rdma statistic": statistic,
  "rdma statistic qp": statisticQp,
};
