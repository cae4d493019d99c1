// Counters of the transport of one NIC, under the names of mlx5's hw_counters where it has them.
#pragma once

#include "base/counters.h"

namespace weir {

#define WEIR_TRANSPORT_COUNTERS(X)                                                                                        \
  X(rx_write_requests, "packets", none, "RDMA WRITE requests received (first or only packets)")                           \
  X(rx_read_requests, "packets", none, "RDMA READ requests received")                                                     \
  X(rx_atomic_requests, "packets", none, "Atomic requests received")                                                      \
  X(out_of_sequence, "packets", none, "RoCEv2 packets received ahead of the expected PSN")                                \
  X(duplicate_request, "packets", none, "RoCEv2 packets received behind the expected PSN")                                \
  X(out_of_buffer, "packets", none, "Requests that found no receive work request posted (RNR NAK)")                       \
  X(packet_seq_err, "packets", none, "NAK sequence errors received")                                                      \
  X(rnr_nak_retry_err, "packets", none, "RNR NAKs received")                                                              \
  X(implied_nak_seq_err, "packets", none, "Responses that show an earlier READ or atomic as lost")                        \
  X(local_ack_timeout_err, "events", none, "Times that the local ACK timer expired")                                      \
  X(retransmitted, "packets", none, "Request packets sent again")                                                         \
  X(req_transport_retries_exceeded, "events", none, "Queue pairs that gave up: no answer, or none that helps")            \
  X(req_rnr_retries_exceeded, "events", none, "Queue pairs that gave up: the peer never had a receive posted")            \
  X(req_remote_access_errors, "packets", none, "NAK remote access errors received")                                       \
  X(req_remote_invalid_request, "packets", none, "NAK invalid requests received")                                         \
  X(req_remote_operation_errors, "packets", none, "NAK remote operational errors received")                               \
  X(resp_remote_access_errors, "packets", none, "Requests refused: key, bounds or access rights (NAK)")                   \
  X(resp_invalid_requests, "packets", none, "Requests refused: opcode, order, length or resources (NAK)")                 \
  X(resp_local_operation_errors, "packets", none, "Requests refused: a receive buffer of ours was not valid (NAK)")       \
  X(tx_acks, "packets", none, "Acknowledgements sent")                                                                    \
  X(tx_naks, "packets", none, "Negative acknowledgements sent")                                                           \
  X(tx_trim_naks, "packets", none, "Of these, those that name packets which a switch has trimmed")                        \
  X(rx_trim_naks, "packets", none, "Negative acknowledgements received that name packets which a switch has trimmed")     \
  X(trimmed_requests, "packets", none, "Request packets that these name, and that are sent again for it")                 \
  X(trimmed_responses, "packets", none, "READ responses that came trimmed, and are asked for again at once")              \
  X(rx_acks, "packets", none, "Acknowledgements received")                                                                \
  X(rx_telemetry, "packets", none, "Acknowledgements received that echo INT")                                             \
  X(rx_telemetry_unwritten, "packets", none, "Of these, those whose INT no switch has written into")                      \
  X(rx_telemetry_overflowed, "packets", none, "Of these, those of packets that passed more switches than INT has room")   \
  X(rx_telemetry_malformed, "packets", none, "INT headers received that are not of their form: nothing is made of them")  \
  X(drop_wrong_state, "packets", drop, "Dropped: packets and CNPs to a queue pair that is not ready to receive them")     \
  X(drop_wrong_peer, "packets", drop, "Dropped: packets and CNPs to a queue pair from another address than its peer's")   \
  X(drop_wrong_destination, "packets", drop, "Dropped: packets and CNPs to another IP address than the queue pair's")     \
  X(drop_partition_key, "packets", drop, "Dropped: packets of another partition")                                         \
  X(drop_queue_key, "packets", drop, "Dropped: datagrams with a wrong Q_Key")                                             \
  X(drop_datagram, "packets", drop, "Dropped: datagrams without a receive posted, or longer than it")                     \
  X(drop_message, "packets", drop, "Dropped: packets of unreliable messages without a receive, or behind a gap")          \
  X(drop_reorder, "packets", drop, "Dropped: packets too far ahead for the reorder buffer, or in the place of a READ")    \
  X(drop_trimmed, "packets", drop,                                                                                        \
    "Trimmed packets that are not asked for: not of a PSN that may come, or here or asked for already")                   \
  X(drop_unexpected_response, "packets", drop, "Dropped: responses that nobody waits for, or not as they were asked for") \
  X(drop_response_queue, "packets", drop, "Dropped: repeated requests while too many responses wait")                     \
  X(drop_program_busy, "packets", drop, "Dropped: packets to a program that does not take them")                          \
  X(drop_program_packet, "packets", drop, "Refused: packets of a program that its queue pair may not send")

WEIR_DEFINE_COUNTERS(TransportCounters, WEIR_TRANSPORT_COUNTERS);

}  // namespace weir
