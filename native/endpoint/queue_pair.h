// One queue pair of a soft NIC: its transport, and how congestion control and pacing hold it back.
#pragma once

#include <cstdint>
#include <memory>

#include "base/types.h"
#include "congestion/dcqcn_notification_point.h"
#include "congestion/dcqcn_reaction_point.h"
#include "endpoint/counters.h"
#include "pacing/pacer.h"
#include "transport/message_stream.h"
#include "transport/verbs_transport.h"
#include "wire/roce_builder.h"

namespace weir {

// A queue pair that streams messages without acknowledgements, or only receives them.
struct QueuePairParameters {
  uint32_t remote_qpn = 0;  // 24 bits: DestQP of what is sent, CNPs included
  RocePath path;            // addresses, DSCP, ECN codepoint and UDP source port of what is sent
  uint8_t priority = 3;     // 0..7, of what is sent
  MessageStreamParameters stream;
  Time start = kNever;          // when to begin sending; kNever: only receives
  Time stop = kNever;           // when to stop, between two packets
  Rate rate_cap = 0;            // most that the QP may send, wire bits per second; 0 = line rate
  uint64_t remote_address = 0;  // RETH
  uint32_t remote_key = 0;      // RETH
};

struct QueuePair {
  // idle (nothing to send) -> waiting (in the timing wheel) <-> ready (in its priority's list) -> idle, or finished
  enum class State : uint8_t { idle, waiting, ready, finished };

  explicit QueuePair(const QueuePairParameters& p) : parameters(p), headers(p.path) {}

  QueuePairParameters parameters;
  RoceTemplate headers;
  uint32_t qpn = 0;
  std::unique_ptr<Transport> transport;  // null: an unused place for a queue pair of an application
  VerbsTransport* verbs = nullptr;       // the same, if an application drives it
  bool connected = false;                // packets from another address than the path's are not for it
  bool started = false;                  // has sent
  bool answers = false;                  // in its priority's list of those with control packets to send
  DcqcnReactionPoint reaction_point;
  NotificationPoint notification_point;
  Pacer pacer;
  Rate paced_rate = 0;
  State state = State::idle;
  uint32_t next_ready = UINT32_MAX;
  uint32_t next_answer = UINT32_MAX;
  uint32_t cnps_owed = 0;  // CNPs for this QP's peer that wait for the link
  QpCounters counters;
};

}  // namespace weir
