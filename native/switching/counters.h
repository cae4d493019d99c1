// Counters of the switch: the single definition of their names, units and help texts.
#pragma once

#include "base/counters.h"

namespace weir {

// Per port. The drop_* words are by ingress port; together they are every reason for which the switch discards a frame.
#define WEIR_SWITCH_PORT_COUNTERS(X)                                                                                         \
  X(rx_packets, "packets", received, "Frames received, MAC control apart")                                                   \
  X(rx_bytes, "bytes", none, "Bytes of those frames, without FCS")                                                           \
  X(tx_packets, "packets", sent, "Frames that the host took to send, MAC control apart")                                     \
  X(tx_bytes, "bytes", none, "Bytes of those frames, without FCS")                                                           \
  X(rx_pause_frames, "packets", control_rx, "802.3x PAUSE frames received")                                                  \
  X(rx_pfc_frames, "packets", control_rx, "PFC frames received")                                                             \
  X(tx_pfc_frames, "packets", control_tx, "PFC frames sent")                                                                 \
  X(tx_pause_frames, "packets", control_tx, "802.3x PAUSE frames sent")                                                      \
  X(rx_mac_control_unknown, "packets", control_rx, "MAC control frames with an opcode or length we do not know, discarded")  \
  X(flood_copies, "packets", duplicate, "Extra copies made of frames received here because their destination was unknown")   \
  X(gso_passed, "packets", none, "Super-frames (GSO) received here that were queued whole")                                  \
  X(gso_segmented, "packets", none, "Super-frames received here that were cut into segments before they were queued")        \
  X(gso_segments, "packets", none, "Segments made of them: each counts as a frame of its own from there on")                 \
  X(int_written, "packets", none, "Packets into which this egress port wrote its INT hop")                                   \
  X(int_overflowed, "packets", none, "Packets whose INT had no room for the hop of this egress port")                        \
  X(int_malformed, "packets", none, "Packets left alone here because their INT header is not of its form")                   \
  X(tx_port_down, "packets", down, "Frames discarded instead of sent, MAC control included: the interface was not up")       \
  X(stragglers, "packets", none, "Frames taken later than their arrival time because they were read too late")               \
  X(fdb_full, "events", none, "Addresses not learned: no room near their hash, and no port there has more of it")            \
  X(fdb_limited, "events", none, "Addresses not learned because this port has as many as it may")                            \
  X(fdb_evicted, "events", none, "Addresses of this port forgotten before their time, to make room for others")              \
  X(routed_packets, "packets", none, "Frames received here that were routed")                                                \
  X(router_packets, "packets", taken, "Frames received here for the router itself: ARP, neighbour discovery")                \
  X(router_made_packets, "packets", made, "Frames that the router made because of what came in here: ARP, ND, ICMP errors")  \
  X(router_icmp_limited, "packets", none, "ICMP messages that the router did not send: more than 1000 in a second")          \
  X(neighbor_full, "events", none, "Neighbors not learned here: the table is full of those that are sent to")                \
  X(kernel_rx_packets, "packets", none, "Frames received here for the router itself that its kernel got by the port's twin") \
  X(kernel_tx_packets, "packets", none, "Frames that the kernel sent by this port's twin, which joined the port's queues")   \
  X(drop_kernel_rate, "packets", drop, "Dropped: for the router's kernel, more than 20,000 of them in a second")             \
  X(drop_kernel_refused, "packets", drop, "Dropped: for the router's kernel, whose twin of the port is down or deleted")     \
  X(drop_blackhole, "packets", drop, "Dropped: to be routed, and the route to the destination is a blackhole")               \
  X(drop_runt, "packets", drop, "Dropped: shorter than an Ethernet header")                                                  \
  X(drop_no_route, "packets", drop, "Dropped: no static route to the destination")                                           \
  X(drop_same_port, "packets", drop, "Dropped: the destination is behind the port the frame came from")                      \
  X(drop_reserved_address, "packets", drop, "Dropped: link-local group address 01:80:C2:00:00:0x stays on the link")         \
  X(drop_router_protocol, "packets", drop, "Dropped: for the router, and nothing that it takes")                             \
  X(drop_router_bridged, "packets", drop, "Dropped: on a routed port, and not for the router")                               \
  X(drop_router_multicast, "packets", drop, "Dropped: to a group or all, on a routed port: nothing that the router takes")   \
  X(drop_ip_header, "packets", drop, "Dropped: to be routed, and the IP header is cut off or wrong")                         \
  X(drop_martian, "packets", drop, "Dropped: to be routed, from or to an address that is never routed")                      \
  X(drop_ttl_expired, "packets", drop, "Dropped: to be routed, and the TTL or hop limit was used up")                        \
  X(drop_ip_no_route, "packets", drop, "Dropped: to be routed, and there is no route to the destination")                    \
  X(drop_neighbor_unknown, "packets", drop, "Dropped: the next hop did not answer ARP or neighbor solicitations")            \
  X(drop_neighbor_queue, "packets", drop, "Dropped: too many frames wait for ARP or neighbor discovery")                     \
  X(drop_vlan_untagged, "packets", drop, "Dropped: without a VLAN's tag, and this port has no untagged VLAN")                \
  X(drop_vlan_not_member, "packets", drop, "Dropped: of a VLAN that this port is not in")                                    \
  X(drop_vlan_egress, "packets", drop, "Dropped: to an address that is known behind a port outside the frame's VLAN")        \
  X(rx_punted, "packets", none, "LLDP frames handed to the slow path instead of forwarded")                                  \
  X(tx_slow_path, "packets", sent, "Frames of the slow path that the host took to send: not in tx_packets")                  \
  X(drop_punt_full, "packets", drop, "Dropped: LLDP frames for the slow path, which had not taken those before")             \
  X(drop_storm_broadcast, "packets", drop, "Dropped: broadcasts beyond the storm control of the port")                       \
  X(drop_storm_unknown_unicast, "packets", drop, "Dropped: frames to unknown addresses beyond the port's storm control")     \
  X(drop_storm_multicast, "packets", drop, "Dropped: multicasts beyond the storm control of the port")                       \
  X(drop_mtu_exceeded, "packets", drop, "Dropped: longer than the egress port's MTU")                                        \
  X(drop_headroom_full, "packets", drop, "Dropped: a lossless ingress queue overran its PFC headroom")                       \
  X(drop_lossy_threshold, "packets", drop, "Dropped: a lossy egress queue was at its dynamic threshold")                     \
  X(drop_cnm_from_outside, "packets", drop, "Dropped: a CNM of a domain that the neighbour here is no part of")              \
  X(drop_queue_limit, "packets", drop, "Dropped: an egress queue was at the limit configured for it")                        \
  X(drop_buffer_full, "packets", drop, "Dropped: the shared buffer was full")                                                \
  X(drop_pfc_watchdog, "packets", drop, "Dropped: by the PFC watchdog, of a queue whose peer pauses without end")            \
  X(drop_offload_refused, "packets", drop, "Dropped: offload metadata that does not fit the frame, or that we cannot do")    \
  X(drop_no_descriptor, "packets", drop, "Dropped: the host ran out of packet descriptors (the run is not valid)")

WEIR_DEFINE_COUNTERS(SwitchPortCounters, WEIR_SWITCH_PORT_COUNTERS);

// Per port and priority. Stems are those of SAI port, queue and ingress priority group statistics, and of IEEE8021-CN-MIB:
// ieee8021CnCpTransmittedFrames, ieee8021CnCpTransmittedCnms, ieee8021CnCpDiscardedFrames.
#define WEIR_SWITCH_PRIORITY_COUNTERS(X)                                                                                       \
  X(pg_packets, "packets", none, "Frames admitted from this port at this priority")                                            \
  X(pg_dropped_packets, "packets", none, "Frames from this port at this priority dropped for want of buffer")                  \
  X(pg_watermark_bytes, "bytes", gauge, "Most bytes that the ingress priority group has held")                                 \
  X(pg_xoff_room_watermark_bytes, "bytes", gauge, "Most bytes that the group has held in its PFC headroom")                    \
  X(queue_packets, "packets", none, "Frames sent from this egress queue")                                                      \
  X(queue_bytes, "bytes", none, "Bytes sent from this egress queue")                                                           \
  X(queue_watermark_bytes, "bytes", gauge, "Most bytes that the egress queue has held")                                        \
  X(wred_ecn_marked_packets, "packets", mark, "Frames marked CE by the RED marker of this egress queue")                       \
  X(pfc_tx_packets, "packets", pause_tx, "PFC or PAUSE frames sent that speak of this priority: XOFF, refresh and XON")        \
  X(pfc_tx_transitions, "events", none, "Times this port stopped its peer at this priority (XON to XOFF)")                     \
  X(pfc_tx_pause_duration, "ns", none, "Time that this port kept its peer stopped at this priority")                           \
  X(pfc_rx_packets, "packets", pause_rx, "PFC or PAUSE frames received that speak of this priority")                           \
  X(pfc_rx_transitions, "events", none, "Times a pause of this port at this priority ended (XOFF to XON)")                     \
  X(pfc_rx_pause_duration, "ns", paused, "Time that this port might not send at this priority because its peer had paused it") \
  X(cn_cp_transmitted_frames, "packets", none, "Data frames that this egress queue's congestion point saw enter it")           \
  X(cn_cp_sampled_frames, "packets", none, "Data frames that it sampled, whether their sources were told or not")              \
  X(cn_cp_transmitted_cnms, "packets", cnm, "CNMs that it made for their sources")                                             \
  X(cn_cp_discarded_frames, "packets", none,                                                                                   \
    "Data frames dropped because this egress queue, which has a congestion point, was full")                                   \
  X(cn_cp_unsent_cnms, "packets", none,                                                                                        \
    "CNMs that it could not make: the host ran out of packet descriptors (the run is not valid)")                              \
  X(cn_cp_sourceless_frames, "packets", none,                                                                                  \
    "Frames it sampled whose source is a group address: there is no way back for a CNM")                                       \
  X(cn_remapped_frames, "packets", none, "Frames that came in at this priority from outside its domain and got another")       \
  X(cn_tags_removed, "packets", none, "CN-TAGs taken off frames sent from this egress queue")                                  \
  X(pfc_wd_storm_detected, "events", none, "Times the PFC watchdog found that the peer paused this egress queue without end")  \
  X(pfc_wd_storm_restored, "events", none, "Times it found that the peer had stopped to do so")                                \
  X(pfc_wd_tx_drop, "packets", none, "Frames for this egress queue that the PFC watchdog dropped")                             \
  X(pfc_wd_rx_drop, "packets", none, "Frames from the peer at this priority that it dropped meanwhile")                        \
  X(trim_packets, "packets", none, "Frames that this egress queue had no room for, and that were trimmed")                     \
  X(dropped_trim_packets, "packets", none, "Of those, frames that were dropped after all: the queue for trimmed ones had no room")

WEIR_DEFINE_COUNTERS(SwitchPriorityCounters, WEIR_SWITCH_PRIORITY_COUNTERS);

}  // namespace weir
