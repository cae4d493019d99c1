/**
 * DCBX (IEEE 802.1Q-2018, clause 38.4): which parameters a port uses, its own or its peer's. Both state machines remember only
 * what the peer told last, so they are functions of that.
 */
import { kRocePort } from "../headers.js";
import { kPriorities } from "../priority.js";
import type { Application, CongestionNotification, DcbTlvs, Ets, EtsConfiguration, Pfc } from "./dcb_tlv.js";

/** UDP port of RoCEv2. */

/** Configuration of a port. */
export interface DcbxLocal {
  /** 48 bits. */
  mac: number;
  willing: boolean;
  /** Priorities with PFC. */
  pfc: readonly number[];
  ets: Ets;
  /** Priority of RoCEv2; undefined: nothing is said of applications. */
  rocePriority: number | undefined;
  /** CNPVs, those whose defence is to be found, and whether the others' is that of an edge; undefined: no congestion notification. */
  congestion: { cnpvs: readonly number[]; automatic: readonly number[]; edge: boolean } | undefined;
}

export interface DcbxPeer {
  mac: number;
  dcb: DcbTlvs;
}

/** State of a CNPV at a port with congestion notification (32.4.8 to 32.5). */
export type CnState = "edge" | "interior" | "interior-ready";

/** Side whose parameters are used. */
type Whose = "local" | "peer";

export interface DcbxState {
  pfc: { from: Whose; priorities: readonly number[] };
  ets: { from: Whose } & Ets;
  /** The priority of RoCEv2 here, and at the peer. */
  roce: { local: number | undefined; peer: number | undefined };
  /** States by automatic CNPV. */
  cn: ReadonlyMap<number, CnState>;
  /** Settings that differ between the ends although they had to agree. */
  mismatches: readonly Mismatch[];
}

export type Mismatch =
  | { of: "pfc"; local: readonly number[]; peer: readonly number[] }
  | { of: "roce-priority"; local: number; peer: number };

export function negotiate(local: DcbxLocal, peer: DcbxPeer | undefined): DcbxState {
  const pfc = symmetric(local, peer);
  const recommended = peer?.dcb.recommendation;
  const takesEts = local.willing && recommended !== undefined;
  const roce = { local: local.rocePriority, peer: rocePriority(peer?.dcb.applications) };
  return {
    pfc,
    ets: takesEts ? { from: "peer", ...recommended } : { from: "local", ...local.ets },
    roce,
    cn: new Map((local.congestion?.automatic ?? []).map((cnpv) => [cnpv, cnState(cnpv, peer?.dcb.congestion)])),
    mismatches: mismatches(local, peer, pfc, roce),
  };
}

/** PFC has to be the same at both ends (38.4.3.2): of two that are willing the one with the lower MAC address keeps its own. */
function symmetric(local: DcbxLocal, peer: DcbxPeer | undefined): DcbxState["pfc"] {
  const remote = peer?.dcb.pfc;
  const yields = remote !== undefined && local.willing && (!remote.willing || local.mac > (peer as DcbxPeer).mac);
  return yields ? { from: "peer", priorities: remote.priorities } : { from: "local", priorities: local.pfc };
}

function mismatches(
  local: DcbxLocal,
  peer: DcbxPeer | undefined,
  pfc: DcbxState["pfc"],
  roce: DcbxState["roce"],
): Mismatch[] {
  const found: Mismatch[] = [];
  const remote = peer?.dcb.pfc;
  // An end that is willing, or yields, does not stay different.
  const insists = remote !== undefined && !remote.willing && pfc.from === "local";
  if (insists && String(remote.priorities) !== String(local.pfc))
    found.push({ of: "pfc", local: local.pfc, peer: remote.priorities });
  if (roce.local !== undefined && roce.peer !== undefined && roce.local !== roce.peer)
    found.push({ of: "roce-priority", local: roce.local, peer: roce.peer });
  return found;
}

function rocePriority(applications: readonly Application[] | undefined): number | undefined {
  const isRoce = ({ selector, protocol }: Application) =>
    protocol === kRocePort && (selector === "udp" || selector === "port");
  return applications?.find(isRoce)?.priority;
}

/**
 * The state is edge until the neighbour says that the priority is a CNPV of its own, and not ready before it says that it takes CN-TAGs.
 */
function cnState(cnpv: number, heard: CongestionNotification | undefined): CnState {
  if (heard === undefined || !heard.cnpvs.includes(cnpv)) return "edge";
  return heard.ready.includes(cnpv) ? "interior-ready" : "interior";
}

/** TLVs that a port sends: what it does now, and what it would have its peer do. */
export function announcement(local: DcbxLocal, state: DcbxState): DcbTlvs {
  const { from: _, ...ets } = state.ets;
  const configuration: EtsConfiguration = { willing: local.willing, cbs: false, max_tcs: kPriorities.length, ...ets };
  const pfc: Pfc = {
    willing: local.willing,
    mbc: false,
    capability: kPriorities.length,
    priorities: [...state.pfc.priorities],
  };
  const { congestion, rocePriority: priority } = local;
  return {
    ets: configuration,
    // A port that is willing has nothing to recommend.
    ...(!local.willing && { recommendation: local.ets }),
    pfc,
    ...(priority !== undefined && { applications: [{ priority, selector: "udp" as const, protocol: kRocePort }] }),
    ...(congestion && {
      congestion: {
        cnpvs: [...congestion.cnpvs],
        // A priority is ready if its frames keep it when they come in.
        ready: congestion.cnpvs.filter(
          (cnpv) => (state.cn.get(cnpv) ?? (congestion.edge ? "edge" : "interior")) !== "edge",
        ),
      },
    }),
  };
}
