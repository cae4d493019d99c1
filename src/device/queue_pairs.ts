/**
 * Flows of a network as queue pairs of its NICs, one at either end. A simulation lays them out by itself, in the same way
 * (native/simulation/simulation.cc).
 */
import { Operation } from "../native/reports.js";
import type { NativeQueuePair } from "../native/types.js";
import type { Flow, Scenario } from "../scenario/types.js";
import { kEct0, kFirstQpn } from "./behaviour.js";
import type { Network } from "./network.js";

/** A flow's queue pair at one of its ends. */
export interface FlowEnd {
  flow: Flow;
  /** Position among the scenario's flows. */
  number: number;
  /** True at the flow's sender. */
  sends: boolean;
  remoteQpn: number;
}

/** The queue pairs of each host in the order of their numbers, which is that of the flows. */
export function flowEnds({ hosts, flows }: Pick<Scenario, "hosts" | "flows">): ReadonlyMap<string, readonly FlowEnd[]> {
  const ends = new Map(hosts.map(({ name }): [string, FlowEnd[]] => [name, []]));
  flows.forEach((flow, number) => {
    const [sender, receiver] = [ends.get(flow.from) as FlowEnd[], ends.get(flow.to) as FlowEnd[]];
    const [senderQpn, receiverQpn] = [kFirstQpn + sender.length, kFirstQpn + receiver.length];
    sender.push({ flow, number, sends: true, remoteQpn: receiverQpn });
    receiver.push({ flow, number, sends: false, remoteQpn: senderQpn });
  });
  return ends;
}

const kOperations = Object.keys(Operation) as (keyof typeof Operation)[];

export function queuePairOf({ nics, flows, sizes, transport }: Network, end: FlowEnd): NativeQueuePair {
  const { flow, number, sends, remoteQpn } = end;
  const of = (column: keyof Network["flows"]) => flows[column][number] as number;
  const nicAt = (side: "from" | "to") => nics[of(side)] as Network["nics"][number];
  const [self, peer] = sends ? [nicAt("from"), nicAt("to")] : [nicAt("to"), nicAt("from")];
  const operation = kOperations[of("operation")] as keyof typeof Operation;
  const reads = operation === "read";
  const [first, count, own] = [of("sizes_first"), of("sizes_count"), of("source_mac")];
  return {
    name: flow.id,
    remote_qpn: remoteQpn,
    path: {
      destination_mac: self.gateway_mac ?? peer.mac,
      source_mac: self.mac,
      tagged: false,
      vlan_tci: 0,
      ip_version: 4,
      source_ip: self.ip,
      destination_ip: peer.ip,
      dscp: of("dscp"),
      ecn: kEct0,
      udp_source_port: of("udp_source_port"),
    },
    priority: of("priority"),
    operation,
    path_mtu: of("path_mtu"),
    message_bytes: of("message_bytes"),
    total_bytes: of("total_bytes"),
    first_psn: 0,
    application: of("application"),
    rate_cap: !sends && reads ? 0 : of("rate_cap"),
    // The receiver of READs asks for them.
    ...(sends !== reads && { start: of("start") }),
    ...((sends || reads) && { stop: of("stop") }),
    ...(!sends && { peer_start: of("start") }),
    ...(of("reliable") === 1 && {
      reliable: true,
      ...(of("on_demand") === 1 && { on_demand: true }),
      outstanding: of("outstanding"),
      // Codes of times are those of the standard: a time scale stretches what they stand for.
      transport: { ...transport, time_scale: 1 },
      ...(count > 0 && { sizes: sizes.slice(first, first + count) }),
    }),
    remote_address: 0,
    remote_key: 0,
    ...(sends && own !== 0 && { source_mac: own }),
  };
}
