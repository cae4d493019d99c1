// Counters of the switch: the single definition of their names, units and help texts.
#pragma once

#include "base/counters.h"

namespace weir {

// Per port. The drop_* words are by ingress port; together they are every reason for which the switch discards a frame.
#define WEIR_SWITCH_PORT_COUNTERS(X)                                                                                   \
  X(rx_packets, "packets", "Frames received, MAC control apart")                                                       \
  X(rx_bytes, "bytes", "Bytes of those frames, without FCS")                                                           \
  X(tx_packets, "packets", "Frames that the host took to send, MAC control apart")                                     \
  X(tx_bytes, "bytes", "Bytes of those frames, without FCS")                                                           \
  X(rx_pause_frames, "packets", "802.3x PAUSE frames received")                                                        \
  X(rx_pfc_frames, "packets", "PFC frames received")                                                                   \
  X(tx_pfc_frames, "packets", "PFC frames sent")                                                                       \
  X(tx_pause_frames, "packets", "802.3x PAUSE frames sent")                                                            \
  X(rx_mac_control_unknown, "packets", "MAC control frames with an opcode or length we do not know, discarded")        \
  X(flood_copies, "packets", "Extra copies made of frames received here because their destination was unknown")        \
  X(gso_passed, "packets", "Super-frames (GSO) received here that were queued whole")                                  \
  X(gso_segmented, "packets", "Super-frames received here that were cut into segments before they were queued")        \
  X(gso_segments, "packets", "Segments made of them: each counts as a frame of its own from there on")                 \
  X(int_written, "packets", "Packets into which this egress port wrote its INT hop")                                   \
  X(int_overflowed, "packets", "Packets whose INT had no room for the hop of this egress port")                        \
  X(int_malformed, "packets", "Packets left alone here because their INT header is not of its form")                   \
  X(tx_port_down, "packets", "Frames discarded instead of sent, MAC control included: the interface was not up")       \
  X(stragglers, "packets", "Frames taken later than their arrival time because they were read too late")               \
  X(fdb_full, "events", "Addresses not learned: no room near their hash, and no port there has more of it")            \
  X(fdb_limited, "events", "Addresses not learned because this port has as many as it may")                            \
  X(fdb_evicted, "events", "Addresses of this port forgotten before their time, to make room for others")              \
  X(routed_packets, "packets", "Frames received here that were routed")                                                \
  X(router_packets, "packets", "Frames received here for the router itself: ARP, neighbour discovery")                 \
  X(router_made_packets, "packets", "Frames that the router made because of what came in here: ARP, ND, ICMP errors")  \
  X(router_icmp_limited, "packets", "ICMP messages that the router did not send: more than 1000 in a second")          \
  X(neighbor_full, "events", "Neighbors not learned here: the table is full of those that are sent to")                \
  X(kernel_rx_packets, "packets", "Frames received here for the router itself that its kernel got by the port's twin") \
  X(kernel_tx_packets, "packets", "Frames that the kernel sent by this port's twin, which joined the port's queues")   \
  X(drop_kernel_rate, "packets", "Dropped: for the router's kernel, more than 20,000 of them in a second")             \
  X(drop_kernel_refused, "packets", "Dropped: for the router's kernel, whose twin of the port is down or deleted")     \
  X(drop_blackhole, "packets", "Dropped: to be routed, and the route to the destination is a blackhole")               \
  X(drop_runt, "packets", "Dropped: shorter than an Ethernet header")                                                  \
  X(drop_no_route, "packets", "Dropped: no static route to the destination")                                           \
  X(drop_same_port, "packets", "Dropped: the destination is behind the port the frame came from")                      \
  X(drop_reserved_address, "packets", "Dropped: link-local group address 01:80:C2:00:00:0x stays on the link")         \
  X(drop_router_protocol, "packets", "Dropped: for the router, and nothing that it takes")                             \
  X(drop_router_bridged, "packets", "Dropped: on a routed port, and not for the router")                               \
  X(drop_router_multicast, "packets", "Dropped: to a group or all, on a routed port: nothing that the router takes")   \
  X(drop_ip_header, "packets", "Dropped: to be routed, and the IP header is cut off or wrong")                         \
  X(drop_martian, "packets", "Dropped: to be routed, from or to an address that is never routed")                      \
  X(drop_ttl_expired, "packets", "Dropped: to be routed, and the TTL or hop limit was used up")                        \
  X(drop_ip_no_route, "packets", "Dropped: to be routed, and there is no route to the destination")                    \
  X(drop_neighbor_unknown, "packets", "Dropped: the next hop did not answer ARP or neighbor solicitations")            \
  X(drop_neighbor_queue, "packets", "Dropped: too many frames wait for ARP or neighbor discovery")                     \
  X(drop_vlan_untagged, "packets", "Dropped: without a VLAN's tag, and this port has no untagged VLAN")                \
  X(drop_vlan_not_member, "packets", "Dropped: of a VLAN that this port is not in")                                    \
  X(drop_vlan_egress, "packets", "Dropped: to an address that is known behind a port outside the frame's VLAN")        \
  X(rx_punted, "packets", "LLDP frames handed to the slow path instead of forwarded")                                  \
  X(tx_slow_path, "packets", "Frames of the slow path that the host took to send: not in tx_packets")                  \
  X(drop_punt_full, "packets", "Dropped: LLDP frames for the slow path, which had not taken those before")             \
  X(drop_storm_broadcast, "packets", "Dropped: broadcasts beyond the storm control of the port")                       \
  X(drop_storm_unknown_unicast, "packets", "Dropped: frames to unknown addresses beyond the port's storm control")     \
  X(drop_storm_multicast, "packets", "Dropped: multicasts beyond the storm control of the port")                       \
  X(drop_mtu_exceeded, "packets", "Dropped: longer than the egress port's MTU")                                        \
  X(drop_headroom_full, "packets", "Dropped: a lossless ingress queue overran its PFC headroom")                       \
  X(drop_lossy_threshold, "packets", "Dropped: a lossy egress queue was at its dynamic threshold")                     \
  X(drop_cnm_from_outside, "packets", "Dropped: a CNM of a domain that the neighbour here is no part of")              \
  X(drop_queue_limit, "packets", "Dropped: an egress queue was at the limit configured for it")                        \
  X(drop_buffer_full, "packets", "Dropped: the shared buffer was full")                                                \
  X(drop_pfc_watchdog, "packets", "Dropped: by the PFC watchdog, of a queue whose peer pauses without end")            \
  X(drop_offload_refused, "packets", "Dropped: offload metadata that does not fit the frame, or that we cannot do")    \
  X(drop_no_descriptor, "packets", "Dropped: the host ran out of packet descriptors (the run is not valid)")

WEIR_DEFINE_COUNTERS(SwitchPortCounters, WEIR_SWITCH_PORT_COUNTERS);

// Per port and priority. Stems are those of SAI port, queue and ingress priority group statistics, and of IEEE8021-CN-MIB:
// ieee8021CnCpTransmittedFrames, ieee8021CnCpTransmittedCnms, ieee8021CnCpDiscardedFrames.
#define WEIR_SWITCH_PRIORITY_COUNTERS(X)                                                                                        \
  X(pg_packets, "packets", "Frames admitted from this port at this priority")                                                   \
  X(pg_dropped_packets, "packets", "Frames from this port at this priority dropped for want of buffer")                         \
  X(pg_watermark_bytes, "bytes", "Most bytes that the ingress priority group has held")                                         \
  X(pg_xoff_room_watermark_bytes, "bytes", "Most bytes that the group has held in its PFC headroom")                            \
  X(queue_packets, "packets", "Frames sent from this egress queue")                                                             \
  X(queue_bytes, "bytes", "Bytes sent from this egress queue")                                                                  \
  X(queue_watermark_bytes, "bytes", "Most bytes that the egress queue has held")                                                \
  X(wred_ecn_marked_packets, "packets", "Frames marked CE by the RED marker of this egress queue")                              \
  X(pfc_tx_packets, "packets", "PFC or PAUSE frames sent that speak of this priority: XOFF, refresh and XON")                   \
  X(pfc_tx_transitions, "events", "Times this port stopped its peer at this priority (XON to XOFF)")                            \
  X(pfc_tx_pause_duration, "ns", "Time that this port kept its peer stopped at this priority")                                  \
  X(pfc_rx_packets, "packets", "PFC or PAUSE frames received that speak of this priority")                                      \
  X(pfc_rx_transitions, "events", "Times a pause of this port at this priority ended (XOFF to XON)")                            \
  X(pfc_rx_pause_duration, "ns", "Time that this port might not send at this priority because its peer had paused it")          \
  X(cn_cp_transmitted_frames, "packets", "Data frames that this egress queue's congestion point saw enter it")                  \
  X(cn_cp_sampled_frames, "packets", "Data frames that it sampled, whether their sources were told or not")                     \
  X(cn_cp_transmitted_cnms, "packets", "CNMs that it made for their sources")                                                   \
  X(cn_cp_discarded_frames, "packets", "Data frames dropped because this egress queue, which has a congestion point, was full") \
  X(cn_cp_unsent_cnms, "packets", "CNMs that it could not make: the host ran out of packet descriptors (the run is not valid)") \
  X(cn_cp_sourceless_frames, "packets", "Frames it sampled whose source is a group address: there is no way back for a CNM")    \
  X(cn_remapped_frames, "packets", "Frames that came in at this priority from outside its domain and got another")              \
  X(cn_tags_removed, "packets", "CN-TAGs taken off frames sent from this egress queue")                                         \
  X(pfc_wd_storm_detected, "events", "Times the PFC watchdog found that the peer paused this egress queue without end")         \
  X(pfc_wd_storm_restored, "events", "Times it found that the peer had stopped to do so")                                       \
  X(pfc_wd_tx_drop, "packets", "Frames for this egress queue that the PFC watchdog dropped")                                    \
  X(pfc_wd_rx_drop, "packets", "Frames from the peer at this priority that it dropped meanwhile")                               \
  X(trim_packets, "packets", "Frames that this egress queue had no room for, and that were trimmed")                            \
  X(dropped_trim_packets, "packets", "Of those, frames that were dropped after all: the queue for trimmed ones had no room")

WEIR_DEFINE_COUNTERS(SwitchPriorityCounters, WEIR_SWITCH_PRIORITY_COUNTERS);

}  // namespace weir
