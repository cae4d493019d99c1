// Counters of the soft NIC: the single definition of their names, units and help texts. Names are those of mlx5
// (hw_counters and ethtool -S) where mlx5 has them.
#pragma once

#include "base/counters.h"
#include "base/types.h"
#include "transport/transport.h"
#include "wire/packet.h"

namespace weir {

#define WEIR_NIC_COUNTERS(X)                                                                                                  \
  X(rx_packets, "packets", received, "Frames received, MAC control apart")                                                    \
  X(rx_bytes, "bytes", none, "Bytes of those frames, without FCS")                                                            \
  X(tx_packets, "packets", sent, "Frames that the host took to send, MAC control apart")                                      \
  X(tx_bytes, "bytes", none, "Bytes of those frames, without FCS")                                                            \
  X(np_ecn_marked_roce_packets, "packets", marked, "RoCEv2 packets received with ECN = CE by the notification point")         \
  X(np_crowded_roce_packets, "packets", none, "RoCEv2 packets answered as if marked: this host fell behind")                  \
  X(np_cnp_sent, "packets", none, "CNPs sent by the notification point")                                                      \
  X(np_cnp_unsent, "packets", none, "Marked datagrams without a CNP: too many senders, no MAC to answer, or to a group")      \
  X(np_cnp_withheld, "packets", none, "CNPs never made: their flow's one before still waited for the NIC's limit of CNPs")    \
  X(rp_cnp_handled, "packets", none, "CNPs that the reaction point used to throttle")                                         \
  X(rp_cnp_ignored, "packets", none, "CNPs received while DCQCN is off")                                                      \
  X(rp_cnm_handled, "packets", none, "CNMs that a reaction point of QCN used to throttle")                                    \
  X(rp_cnm_ignored, "packets", cnm_refused, "CNMs received while QCN is off, or takes those that come by IP")                 \
  X(rp_cnm_truncated, "packets", cnm_refused, "CNMs refused: shorter than 24 octets")                                         \
  X(rp_cnm_bad_version, "packets", cnm_refused, "CNMs refused: of a version other than 0")                                    \
  X(rp_cnm_malformed, "packets", cnm_refused,                                                                                 \
    "CNMs refused: they encapsulate more than they may or have, or their tag is cut off")                                     \
  X(rp_cnm_not_for_us, "packets", cnm_refused, "CNMs refused: to another MAC address, or to a group")                         \
  X(rp_cnm_not_cnpv, "packets", cnm_refused, "CNMs refused: of a priority that is none of congestion notification here")      \
  X(rp_cnm_no_feedback, "packets", cnm_refused, "CNMs refused: their quantized feedback is 0")                                \
  X(rp_cnm_unknown_flow, "packets", cnm_refused, "CNMs refused: of no flow of this NIC")                                      \
  X(rp_cnm_wrong_flow, "packets", cnm_refused, "CNMs refused: their flow has another priority or other addresses")            \
  X(rp_cnm_ambiguous, "packets", cnm_refused, "CNMs refused: without a CN-TAG they could mean several flows")                 \
  X(rx_trimmed_roce_packets, "packets", none, "RoCEv2 packets of which a switch has left the headers: their payload is lost") \
  X(rx_icrc_encapsulated, "packets", drop, "Dropped: RoCEv2 packets with a wrong ICRC")                                       \
  X(drop_malformed, "packets", drop, "Dropped: frames whose headers do not parse")                                            \
  X(drop_not_for_us, "packets", drop, "Dropped: unicast frames to another MAC address")                                       \
  X(drop_vlan, "packets", drop, "Dropped: frames of another VLAN than the NIC's")                                             \
  X(drop_unknown_qp, "packets", drop, "Dropped: RoCEv2 packets to a QP that does not exist here")                             \
  X(drop_unknown_group, "packets", drop, "Dropped: datagrams to a multicast group that no queue pair here has joined")        \
  X(drop_unsupported_opcode, "packets", drop, "Dropped: RoCEv2 packets with an opcode that this endpoint does not serve")     \
  X(rx_punted, "packets", none, "Other frames handed to the slow path (ARP, IPv6 neighbours, ping, LLDP, connections)")       \
  X(drop_punt_full, "packets", drop,                                                                                          \
    "Dropped: of those, frames for which the slow path had no room: it had not taken those before")                           \
  X(tx_slow_path, "packets", sent, "Frames of the slow path that the host took to send: in none of the other counts")         \
  X(stack_tx_packets, "packets", none, "Frames that the host's own stack gave to send; of a super-frame, its segments")       \
  X(stack_rx_packets, "packets", none, "Frames that the host's own stack has taken")                                          \
  X(drop_stack_refused, "packets", drop, "Dropped: the stack's, with offload metadata that does not fit, or without header")  \
  X(drop_stack_control, "packets", drop, "Dropped: the stack's MAC control frames and CNMs, which are the NIC's to send")     \
  X(drop_stack_mtu_exceeded, "packets", drop, "Dropped: the stack's that are longer than the link's MTU")                     \
  X(drop_stack_no_descriptor, "packets", drop, "Dropped: the stack's, as the host ran out of packet descriptors")             \
  X(drop_stack_rx_no_descriptor, "packets", drop, "Dropped: to the stack, as the host ran out of packet descriptors")         \
  X(drop_stack_rx_full, "packets", drop, "Dropped: to the stack, which took none for a while")                                \
  X(drop_stack_rx_down, "packets", drop, "Dropped: to the stack, whose interface was not up")                                 \
  X(rx_pfc_frames, "packets", control_rx, "PFC frames received")                                                              \
  X(rx_pause_frames, "packets", control_rx, "802.3x PAUSE frames received")                                                   \
  X(tx_pause_frames, "packets", control_tx, "802.3x PAUSE frames sent")                                                       \
  X(tx_pfc_frames, "packets", control_tx, "PFC frames sent")                                                                  \
  X(rx_unsupported_op_phy, "packets", control_rx, "MAC control frames with an opcode or length we do not know, discarded")    \
  X(tx_port_down, "packets", down, "Frames discarded instead of sent, MAC control included: the interface was not up")        \
  X(stragglers, "packets", none, "Frames taken later than their arrival time because they were read too late")                \
  X(untold_messages, "messages", none,                                                                                        \
    "Messages of a lab that were complete, and whose record nobody had taken in time to make room")                           \
  X(tx_no_descriptor, "events", none, "Sends put off because the host ran out of packet descriptors (the run is not valid)")  \
  X(cc_refused_answers, "events", none,                                                                                       \
    "Answers of a library's congestion control that were none: NaN, below 0, a time that is over")                            \
  X(rp_cur_flows, "flows", gauge, "Flows that reaction points limit now: QPs under DCQCN (a gauge)")

WEIR_DEFINE_COUNTERS(NicCounters, WEIR_NIC_COUNTERS);

#define WEIR_NIC_PRIORITY_COUNTERS(X)                                                                               \
  X(rx_prio_packets, "packets", none, "Frames received at this priority")                                           \
  X(rx_prio_bytes, "bytes", none, "Bytes of those frames, without FCS")                                             \
  X(tx_prio_packets, "packets", none, "Frames sent at this priority")                                               \
  X(tx_prio_bytes, "bytes", none, "Bytes of those frames, without FCS")                                             \
  X(tx_prio_stack_packets, "packets", none, "Frames among them of the host's own stack")                            \
  X(tx_prio_stack_bytes, "bytes", none, "Bytes of those frames, without FCS")                                       \
  X(tx_prio_stack_discard, "packets", none, "Dropped: frames of the host's own stack, whose queue was full")        \
  X(rx_prio_pause, "packets", pause_rx, "PFC or PAUSE frames received that speak of this priority")                 \
  X(tx_prio_pause, "packets", pause_tx, "PFC or PAUSE frames sent that speak of this priority")                     \
  X(rx_prio_pause_transition, "events", none, "Times a pause of this port at this priority ended (XOFF to XON)")    \
  X(rx_prio_pause_duration, "ns", paused, "Time that this port might not send at this priority")                    \
  X(tx_prio_pause_duration, "ns", none, "Time that this port kept its peer stopped at this priority")               \
  X(rx_prio_buf_discard, "packets", drop, "Dropped: frames received at this priority with the receive buffer full") \
  X(rp_port_pri_created_rps, "events", none, "Reaction points of this priority that a CNM made limit their flow")   \
  X(rp_port_pri_centiseconds, "centiseconds", none, "Time that reaction points limited flows of this priority, summed up")

WEIR_DEFINE_COUNTERS(NicPriorityCounters, WEIR_NIC_PRIORITY_COUNTERS);

#define WEIR_QP_COUNTERS(X)                                                                          \
  X(tx_packets, "packets", none, "Data packets sent")                                                \
  X(tx_bytes, "bytes", none, "RDMA payload sent")                                                    \
  X(tx_wire_bytes, "bytes", none, "Link bytes of the data sent: frames, FCS, preamble and gap")      \
  X(rx_packets, "packets", none, "Data packets received in sequence, no acknowledgements")           \
  X(rx_bytes, "bytes", none, "RDMA payload received in sequence")                                    \
  X(rx_wire_bytes, "bytes", none, "Link bytes of the data received: frames, FCS, preamble and gap")  \
  X(rx_messages, "messages", none, "SENDs and WRITEs whose last packet was received in sequence")    \
  X(arrived, "packets", none, "Data packets of reliable streams that came: in order, early, again")  \
  X(lost, "packets", none, "Data packets of streams that never came: gaps in the PSNs")              \
  X(trimmed, "packets", none, "Packets for this QP of which a switch has left the headers")          \
  X(duplicate, "packets", none, "Requests received behind the expected PSN")                         \
  X(ecn_marked, "packets", none, "Valid packets received with ECN = CE, acknowledgements too")       \
  X(cnp_sent, "packets", none, "CNPs sent for this QP's incoming flow")                              \
  X(cnp_handled, "packets", none, "CNPs received that cut this QP's rate; CNMs that cut its flow's") \
  X(cnm_lowest, "packets", none, "CNMs among them whose feedback is 1, the lowest there is")

WEIR_DEFINE_COUNTERS(QpCounters, WEIR_QP_COUNTERS);

// Counts a packet of a queue pair, whose packets all have the same headers below the BTH.
inline void count_received(QpCounters& counters, const Received& before, const Received& after, uint16_t bth_offset) {
  const uint64_t packets = after.packets - before.packets;
  counters.rx_packets += packets;
  counters.rx_bytes += after.bytes - before.bytes;
  counters.rx_wire_bytes += after.transport_bytes - before.transport_bytes + packets * (bth_offset + kIcrc + kEthernetOverhead);
  counters.rx_messages += after.messages - before.messages;
  counters.duplicate += after.duplicates - before.duplicates;
}

}  // namespace weir
