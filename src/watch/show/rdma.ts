/** Lines in the shape of iproute2's `rdma`: `rdma link`, `rdma res`, `rdma res show qp`, `rdma statistic`. */

import type { PortStatus, QueuePairReport, Status } from "../../device/protocol.js";
import { printable } from "../../result/report/format.js";
import { ShownCounters, text } from "./counts.js";
import { type Answers, type Request, textView } from "./view.js";

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

/**
 * Shows lines that begin with the port of a NIC, or items that name it. @param more Returns a line behind one, and last fields of an item.
 */
function linkView<const Names extends Request>(
  description: string,
  requests: readonly Names[],
  rows: (answers: Answers<Names | "status">) => Readonly<Record<string, string | number>>[],
  more?: (row: Readonly<Record<string, string | number>>) => { line: string; fields: object },
) {
  return textView({
    description,
    of: "nic",
    joins: true,
    requests: ["status", ...requests],
    text: (answers) =>
      rows(answers)
        .map((row) => `link ${linkOf(answers.status)} ${words(row)}\n${more?.(row).line ?? ""}`)
        .join(""),
    json: (answers) =>
      rows(answers).map((row) => ({ ifname: answers.status.name, port: 1, ...row, ...more?.(row).fields })),
  });
}

const link = linkView("the port of a NIC", ["ports"], ({ ports: [port] }) => [linkState(port)]);

const res = textView({
  description: "how many queue pairs a NIC has",
  of: "nic",
  joins: true,
  requests: ["status", "queue_pairs"],
  text: ({ status, queue_pairs }, position) =>
    `${position}: ${printable(status.name)}: ${words({ qp: queue_pairs.length })}\n`,
  json: ({ status, queue_pairs }, position) => [{ ifindex: position, ifname: status.name, qp: queue_pairs.length }],
});

/** A queue pair that only receives is no further than ready-to-receive; one that does not know its peer not even that. */
function queuePair(pair: QueuePairReport, { pid }: Status) {
  const streams = {
    ...{ unresolved: "INIT", connecting: "RTR", idle: "RTR" },
    ...{ waiting: "RTS", ready: "RTS", finished: "RTS" },
  }[pair.state];
  const state = pair.qp_state === undefined ? streams : kQpStates[pair.qp_state];
  const type = pair.transport === "ud" || pair.transport === "uc" ? pair.transport.toUpperCase() : "RC";
  const { program } = pair;
  const comm = program === null || program.command === "" ? {} : { comm: printable(program.command) };
  return { lqpn: pair.qpn, rqpn: pair.remote_qpn, type, state, pid: program?.pid ?? pid, ...comm };
}

const kQpStates = { reset: "RESET", init: "INIT", rtr: "RTR", rts: "RTS", error: "ERR" } as const;

const resQp = linkView("queue pairs of a NIC", ["queue_pairs"], ({ status, queue_pairs }) =>
  queue_pairs.map((pair) => queuePair(pair, status)),
);

const byName = (counters: readonly { name: string; value: number }[]) =>
  Object.fromEntries(counters.map(({ name, value }) => [name, Number(text(value))]));

const statistic = linkView("counters of a NIC", ["counters"], ({ counters }) => [
  byName(new ShownCounters(counters).ofNic()),
]);

const statisticQp = linkView(
  "counters of a NIC's queue pairs",
  ["counters"],
  ({ status: { pid }, counters }) =>
    [...new ShownCounters(counters).by("qpn")].flatMap(([qpn, own]) =>
      qpn === "" ? [] : [{ cntn: Number(qpn), pid, ...byName([...own]) }],
    ),
  ({ cntn }) => ({ line: `    LQPN: <${cntn}>\n`, fields: { lqpn: [cntn] } }),
);

export const kRdmaViews = {
  "rdma link": link,
  "rdma res": res,
  "rdma res qp": resQp,
  "rdma statistic": statistic,
  "rdma statistic qp": statisticQp,
};
