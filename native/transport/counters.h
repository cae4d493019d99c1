// Counters of the transport of one NIC, under the names of mlx5's hw_counters where it has them.
#pragma once

#include "base/counters.h"

namespace weir {

#define WEIR_TRANSPORT_COUNTERS(X)                                                                                               \
  X(rx_write_requests, "packets", "RDMA WRITE requests received (first or only packets)")                                        \
  X(rx_read_requests, "packets", "RDMA READ requests received")                                                                  \
  X(rx_atomic_requests, "packets", "Atomic requests received")                                                                   \
  X(out_of_sequence, "packets", "RoCEv2 packets received ahead of the expected PSN")                                             \
  X(duplicate_request, "packets", "RoCEv2 packets received behind the expected PSN")                                             \
  X(out_of_buffer, "packets", "Requests that found no receive work request posted (RNR NAK)")                                    \
  X(packet_seq_err, "packets", "NAK sequence errors received")                                                                   \
  X(rnr_nak_retry_err, "packets", "RNR NAKs received")                                                                           \
  X(implied_nak_seq_err, "packets", "Responses that show an earlier READ or atomic as lost")                                     \
  X(local_ack_timeout_err, "events", "Times that the local ACK timer expired")                                                   \
  X(retransmitted, "packets", "Request packets sent again")                                                                      \
  X(req_transport_retries_exceeded, "events", "Queue pairs that gave up: no answer, or none that helps")                         \
  X(req_rnr_retries_exceeded, "events", "Queue pairs that gave up: the peer never had a receive posted")                         \
  X(req_remote_access_errors, "packets", "NAK remote access errors received")                                                    \
  X(req_remote_invalid_request, "packets", "NAK invalid requests received")                                                      \
  X(req_remote_operation_errors, "packets", "NAK remote operational errors received")                                            \
  X(resp_remote_access_errors, "packets", "Requests refused: key, bounds or access rights (NAK)")                                \
  X(resp_invalid_requests, "packets", "Requests refused: opcode, order, length or resources (NAK)")                              \
  X(resp_local_operation_errors, "packets", "Requests refused: a receive buffer of ours was not valid (NAK)")                    \
  X(tx_acks, "packets", "Acknowledgements sent")                                                                                 \
  X(tx_naks, "packets", "Negative acknowledgements sent")                                                                        \
  X(tx_trim_naks, "packets", "Of these, those that name packets which a switch has trimmed")                                     \
  X(rx_trim_naks, "packets", "Negative acknowledgements received that name packets which a switch has trimmed")                  \
  X(trimmed_requests, "packets", "Request packets that these name, and that are sent again for it")                              \
  X(trimmed_responses, "packets", "READ responses that came trimmed, and are asked for again at once")                           \
  X(rx_acks, "packets", "Acknowledgements received")                                                                             \
  X(rx_telemetry, "packets", "Acknowledgements received that echo INT")                                                          \
  X(rx_telemetry_unwritten, "packets", "Of these, those whose INT no switch has written into")                                   \
  X(rx_telemetry_overflowed, "packets", "Of these, those of packets that passed more switches than INT has room")                \
  X(rx_telemetry_malformed, "packets", "INT headers received that are not of their form: nothing is made of them")               \
  X(drop_wrong_state, "packets", "Dropped: packets and CNPs to a queue pair that is not ready to receive them")                  \
  X(drop_wrong_peer, "packets", "Dropped: packets and CNPs to a queue pair from another address than its peer's")                \
  X(drop_wrong_destination, "packets", "Dropped: packets and CNPs to another IP address than the queue pair's")                  \
  X(drop_partition_key, "packets", "Dropped: packets of another partition")                                                      \
  X(drop_queue_key, "packets", "Dropped: datagrams with a wrong Q_Key")                                                          \
  X(drop_datagram, "packets", "Dropped: datagrams without a receive posted, or longer than it")                                  \
  X(drop_message, "packets", "Dropped: packets of unreliable messages without a receive, or behind a gap")                       \
  X(drop_reorder, "packets", "Dropped: packets too far ahead for the reorder buffer, or in the place of a READ")                 \
  X(drop_trimmed, "packets", "Trimmed packets that are not asked for: not of a PSN that may come, or here or asked for already") \
  X(drop_unexpected_response, "packets", "Dropped: responses that nobody waits for, or not as they were asked for")              \
  X(drop_response_queue, "packets", "Dropped: repeated requests while too many responses wait")                                  \
  X(drop_program_busy, "packets", "Dropped: packets to a program that does not take them")                                       \
  X(drop_program_packet, "packets", "Refused: packets of a program that its queue pair may not send")

WEIR_DEFINE_COUNTERS(TransportCounters, WEIR_TRANSPORT_COUNTERS);

}  // namespace weir
