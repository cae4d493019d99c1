// One queue pair of a soft NIC: its flow out (stream, reaction point, pacing) and its flow in (sequence, notification point).
#pragma once

#include <cstdint>

#include "base/types.h"
#include "congestion/dcqcn_notification_point.h"
#include "congestion/dcqcn_reaction_point.h"
#include "endpoint/counters.h"
#include "pacing/pacer.h"
#include "transport/message_stream.h"
#include "transport/sequence_check.h"
#include "wire/roce_builder.h"

namespace weir {

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
  // idle -> waiting (in the timing wheel) <-> ready (in its priority's list) -> finished
  enum class State : uint8_t { idle, waiting, ready, finished };

  explicit QueuePair(const QueuePairParameters& p)
      : parameters(p), headers(p.path), stream(p.stream), sequence(p.stream.first_psn) {}

  QueuePairParameters parameters;
  RoceTemplate headers;
  MessageStream stream;
  SequenceCheck sequence;
  DcqcnReactionPoint reaction_point;
  NotificationPoint notification_point;
  Pacer pacer;
  Rate paced_rate = 0;
  State state = State::idle;
  uint32_t next_ready = UINT32_MAX;
  uint32_t cnps_owed = 0;  // CNPs for this QP's peer that wait for the link
  QpCounters counters;
};

}  // namespace weir
