/** Reasons why tables and fields of a config_db have nothing to do here. */

type Reason = readonly [pattern: RegExp, reason: string];

const kHardware = "of the hardware: an interface is taken as it is";
const kGreen = "without policers every packet is green";

/** Reasons by `TABLE|field`; the first that fits holds. */
const kFields: readonly Reason[] = [
  [/^PORT\|(description|alias|index)$/, "for people"],
  [/^PORT\|(mtu)$/, "the interface's own MTU holds"],
  [/^PORT\|(pfc_asym)$/, "off"],
  [/^PORT\|/, kHardware],
  [/^WRED_PROFILE\|(wred_)?(yellow|red)_/, kGreen],
  [/^BUFFER_PROFILE\|xon$/, "an ingress goes on xon_offset below its threshold"],
  [/^BUFFER_PROFILE\|packet_discard_action$/, "what finds no room is dropped"],
  [/^BUFFER_PROFILE\|headroom_type$/, "headroom is what xoff says, or the cable"],
  [/^BUFFER_PROFILE\|/, "no lossless priority group or lossy queue of a port uses it"],
  [/^BUFFER_POOL\|/, "one memory holds what comes in and goes out"],
  [/^SCHEDULER\|(cir|cbs|pbs)$/, "no guaranteed rates or bursts: weights share the link, `pir` limits a queue"],
  [/^SCHEDULER\|/, "no queue refers to it"],
  [/^PFC_WD\|POLL_INTERVAL$/, "queues are looked at four times in each detection_time"],
  [/^PFC_WD\|/, "nothing of the kind"],
  [/^PORT_QOS_MAP\|.*_to_(dscp|dot1p|exp)_map$/, "packets leave as they came: DSCP and tag are not changed"],
  [/^PORT_QOS_MAP\|pfc_to_pg_map$/, "the priority of a pause is the number of the priority group"],
  [/^QUEUE\|/, "nothing of the kind"],
  [/^DEVICE_METADATA\|/, "about the device; its hostname names the switch, its mac is the router's"],
  [/^VLAN\|dhcp/, "no DHCP relay"],
  [/^(VLAN|VLAN_MEMBER)\|/, "nothing of the kind"],
  [/^\w*INTERFACE\|/, "an address is all that an interface has here"],
  [/^STATIC_ROUTE\|/, "gateways are all that a route has here"],
];

/** Reasons by table. */
const kTables: readonly Reason[] = [
  [
    /^(DSCP_TO_TC_MAP|TC_TO_QUEUE_MAP|TC_TO_PRIORITY_GROUP_MAP|MAP_PFC_PRIORITY_TO_QUEUE|DOT1P_TO_TC_MAP)$/,
    "no port refers to it",
  ],
  [/^WRED_PROFILE$/, "no queue refers to it"],
  [/^BUFFER_PORT_(IN|E)GRESS_PROFILE_LIST$/, "ports have no limits of their own: priority groups and queues have"],
  [/^LOSSLESS_TRAFFIC_PATTERN$/, "cells are not modelled, so frames of every size take their own bytes"],
  [/^(ACL_|MIRROR_|POLICER|COPP_|EVERFLOW)/, "no access lists, mirrors or policers"],
  [/^LOOPBACK_INTERFACE$/, "the router's own addresses are those of its ports and VLANs"],
  [/^PORTCHANNEL$/, "no LACP: a port channel is the first of its members that is taken"],
  [/^(PEER_SWITCH|MUX_|TUNNEL)/, "no tunnels, and no second ToR that would take over"],
  [/^NEIGH$/, "neighbors are asked for by ARP and neighbor discovery"],
  [
    /^(BGP|ROUTE|STATIC_ROUTE|PREFIX|ECMP|FG_NHG|OSPF|VRF|DEVICE_NEIGHBOR|BFD|VOQ_INBAND|PEER)/,
    "routing protocols are for FRR in the namespace of `router.kernel`",
  ],
  [/^(TC_TO_DSCP|TC_TO_DOT1P|DSCP_TO_FC|EXP_TO_|MPLS|PFC_PRIORITY_TO_PRIORITY_GROUP)/, "packets leave as they came"],
  [/^DEVICE_METADATA$/, "about the device"],
  [/^(SYSTEM_PORT|CHASSIS|FABRIC|VOQ)/, "of a chassis"],
  [/^(STP|MCLAG|DHCP|FDB|MAC)/, "no protocol of this kind"],
];

const kNoPart = "no part of forwarding, priorities or buffers";

export function whyIgnored(table: string, field?: string): string {
  const place = `${table}|${field ?? ""}`;
  const [, reason] =
    (field === undefined ? undefined : kFields.find(([pattern]) => pattern.test(place))) ??
    kTables.find(([pattern]) => pattern.test(table)) ??
    [];
  return reason ?? kNoPart;
}
