/** Weir's own tables of LLDP and DCBX: the neighbours at the other ends of links, and the agreements with them. */
import type { DcbxPortReport } from "../../device/protocol.js";
import { printable } from "../../result/report/format.js";
import { gridView } from "./view.js";

const state = (enabled: boolean) => (enabled ? "" : " off");

export const lldp = gridView({
  description: "LLDP: neighbours of each port, and frames of LLDP",
  of: "any",
  requests: ["lldp", "ports"],
  grids: ({ lldp: { enabled, ports } }) => [
    {
      title: `LLDP neighbours${state(enabled)}`,
      head: ["Port", "Neighbour", "Chassis", "Its port", "Capabilities", "Expires/s"],
      names: 5,
      rows: ports.flatMap(({ port, neighbours }) =>
        neighbours.map(({ system_name, chassis, port: its, capabilities, expires_in_s }) => [
          printable(port),
          printable(system_name ?? "-"),
          printable(chassis),
          printable(its),
          capabilities.join(" ") || "-",
          String(Math.ceil(expires_in_s)),
        ]),
      ),
    },
    {
      title: `LLDP frames${state(enabled)}`,
      head: [
        "Port",
        "Sent",
        "Received",
        "Limited",
        "Discarded",
        "With errors",
        "TLVs discarded",
        "TLVs unknown",
        "Aged out",
      ],
      names: 1,
      rows: ports.map((port) =>
        [
          printable(port.port),
          port.frames_out,
          port.frames_in,
          port.frames_limited,
          port.frames_discarded,
          port.frames_in_errors,
          port.tlvs_discarded,
          port.tlvs_unrecognized,
          port.ageouts,
        ].map(String),
      ),
    },
  ],
});

const list = (priorities: readonly number[] | undefined) =>
  priorities === undefined ? "-" : priorities.join(",") || "none";
const yesNo = (value: boolean | undefined) => (value === undefined ? "-" : value ? "yes" : "no");

function verdict({ peers, peer, mismatches, local, peer_roce_priority }: DcbxPortReport): string {
  if (peers > 1) return `${peers} peers`;
  if (peer === null) return "no peer";
  const comparesRoce = local.roce_priority !== null && peer_roce_priority !== null;
  if ((peer.pfc ?? null) === null && !comparesRoce) return "nothing to compare";
  return mismatches.length === 0 ? "ok" : mismatches.map(({ of }) => `${of} mismatch`).join(", ");
}

type Shares = DcbxPortReport["operational"]["ets"];

/** Writes each priority's share by its class: "strict", or percent, "25/2" of a class that it shares with another one. */
const shares = ({ prio_tc, bandwidth, tsa }: Omit<Shares, "from">) =>
  prio_tc.map((tc) => {
    const together = prio_tc.filter((other) => other === tc).length;
    return tsa[tc] === "ets" ? `${bandwidth[tc]}%${together > 1 ? `/${together}` : ""}` : String(tsa[tc]);
  });

export const dcbx = gridView({
  description: "DCBX: what this end and its peer have for PFC, ETS, RoCEv2's priority and congestion notification",
  of: "any",
  requests: ["dcbx", "ports"],
  grids: ({ dcbx: { enabled, ports } }) => [
    {
      title: `DCBX${state(enabled)}`,
      head: ["Port", "Peer", "Willing", "Peer's", "PFC", "Peer's", "In use", "RoCEv2", "Peer's", "Verdict"],
      names: 10,
      rows: ports.map((port) => {
        const { peer, local, operational } = port;
        return [
          printable(port.port),
          printable(peer?.neighbour ?? "-"),
          yesNo(port.willing),
          yesNo(peer?.pfc?.willing),
          list(local.pfc),
          list(peer?.pfc?.priorities),
          `${list(operational.pfc.priorities)}${operational.pfc.from === "peer" ? " (peer's)" : ""}`,
          String(local.roce_priority ?? "-"),
          String(port.peer_roce_priority ?? "-"),
          verdict(port),
        ];
      }),
    },
    {
      title: `ETS, by priority${state(enabled)}`,
      head: ["Port", "Whose", "0", "1", "2", "3", "4", "5", "6", "7"],
      names: 2,
      rows: ports.flatMap(({ port, local, peer, operational: { ets } }) => [
        [printable(port), "own", ...shares(local.ets)],
        ...(peer?.ets ? [[printable(port), "peer's", ...shares(peer.ets)]] : []),
        ...(peer?.recommendation ? [[printable(port), "peer recommends", ...shares(peer.recommendation)]] : []),
        [printable(port), `in use (${ets.from === "peer" ? "peer's" : "own"})`, ...shares(ets)],
      ]),
    },
    {
      title: `Congestion notification, defence auto${state(enabled)}`,
      head: ["Port", "CNPV", "Defence"],
      names: 3,
      rows: ports.flatMap(({ port, congestion }) =>
        Object.entries(congestion).map(([cnpv, defence]) => [printable(port), cnpv, defence]),
      ),
    },
  ],
});
