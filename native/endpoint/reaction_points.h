// The reaction points of a NIC under QCN: which flow a queue pair belongs to, whose turn it is within a flow, and which flow a
// congestion notification message (CNM) means.
//
// IEEE 802.1Q clause 31 gives an end station, for each congestion notification priority value (CNPV), a group of reaction points
// (RPG) with parameters in common, up to rpppMaxRps of them; what passes through one of them is a flow. Here:
//
// - Flows are what FlowSelection says. A datagram queue pair has many destinations: where these would make the flow it is one by
//   itself. The first `reaction_points` flows of a CNPV have a reaction point each; further ones share these, picked by a hash.
// - A reaction point is a rate (congestion/qcn_reaction_point.h) and a limiter that keeps it. It has a list of the queue pairs
//   that wait for it. One at a time is let go; it sends one packet and joins the end of the list. So the queue pairs of a flow
//   take turns, packet by packet, and a packet costs the same however many they are.
// - A flow that loses its last queue pair keeps its rate, until its reaction point is needed for another flow: who connects
//   anew does not start anew.
// - Flow identifiers of CN-TAGs are the reaction points' numbers, from 1 on.
//
// A CNM changes a rate if its priority is a CNPV here, it states a feedback, and it names a reaction point:
// - with a CN-TAG by that, if the reaction point has the encapsulated priority, sends to the encapsulated destination address (of
//   one destination only where it has one), and has the CNM's destination as its source;
// - without one by the RoCEv2 headers it encapsulates (destination queue pair and UDP source port) together with both
//   addresses, or, where it encapsulates less, by the addresses alone. That may be ambiguous.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/types.h"
#include "congestion/qcn_reaction_point.h"
#include "endpoint/nic_parameters.h"
#include "endpoint/queue_pair.h"
#include "link/pacer.h"
#include "link/token_bucket.h"
#include "wire/packet.h"
#include "wire/qcn.h"

namespace weir {

// Pacer or TokenBucket; see there.
class FlowLimiter {
 public:
  FlowLimiter(Limiter kind, const TokenBucketParameters* shared) {
    if (kind == Limiter::token_bucket) limiter_.emplace<TokenBucket>().configure(shared);
  }
  Time release() const {
    return std::visit([](const auto& limiter) { return limiter.release(); }, limiter_);
  }
  void sent(Time at, uint32_t wire_bytes, Rate rate) {
    std::visit([=](auto& limiter) { limiter.sent(at, wire_bytes, rate); }, limiter_);
  }
  void rate_changed(Time now, Rate rate) {
    std::visit([=](auto& limiter) { limiter.rate_changed(now, rate); }, limiter_);
  }
  void reset(Time now) {
    std::visit([=](auto& limiter) { limiter.reset(now); }, limiter_);
  }

 private:
  std::variant<Pacer, TokenBucket> limiter_;
};

// In the order of use.
struct ReactionPoint {
  static constexpr uint32_t kNobody = UINT32_MAX;

  uint32_t first = kNobody;  // queue pairs that wait for their turn
  uint32_t last = kNobody;
  uint32_t let_go = kNobody;  // the queue pair whose turn it is, and which has not sent yet
  uint32_t sent_last = kNobody;
  Rate paced_rate = 0;
  Time wakes = kNever;  // with a driver: when it is looked at
  FlowLimiter limiter;
  QcnReactionPoint rate;
  uint64_t source_mac = 0;       // of its queue pairs; 0: several
  uint64_t destination_mac = 0;  // the same
  uint32_t members = 0;          // queue pairs
  uint64_t key = 0;              // of its flow
  uint8_t priority = 0;
  bool started = false;   // one of them has begun to send
  bool limited = false;   // counted
  bool reusable = false;  // in the list of those without members

  ReactionPoint(Limiter kind, const TokenBucketParameters* shared) : limiter(kind, shared) {}
};

class ReactionPoints {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kMost = 65'535;  // flow identifiers; CNPVs have equal shares of them

  enum class Verdict : uint8_t {
    handled,
    not_cnpv,      // its priority is none of congestion notification here
    no_feedback,   // its quantized feedback is 0
    unknown_flow,  // no reaction point is meant
    wrong_flow,    // the flow identifier's reaction point has another priority or other addresses
    ambiguous      // several are meant
  };

  // For queue pairs with indexes below `queue_pairs`. `parameters` must outlive it.
  ReactionPoints(const NicParameters& parameters, uint32_t queue_pairs);

  // How many there can be: numbers are below.
  static uint32_t places(const NicParameters& parameters, uint32_t queue_pairs);
  uint32_t size() const { return static_cast<uint32_t>(points_.size()); }
  ReactionPoint& operator[](uint32_t number) { return points_[number]; }
  const ReactionPoint& operator[](uint32_t number) const { return points_[number]; }
  static uint16_t flow_id(uint32_t number) { return static_cast<uint16_t>(number + 1); }

  // Of a queue pair; kNone if it is not governed.
  uint32_t of(uint32_t index) const { return members_[index].point; }
  // The queue pair becomes part of its flow, unless its priority is no CNPV. `datagram`: its path has no destination.
  void bind(uint32_t index, const QueuePair& qp, bool datagram, Time now);
  // It is no part of it any more, and neither waits for its turn nor has it.
  void unbind(uint32_t index);

  // Turns.
  bool waits(uint32_t index) const { return members_[index].waits; }
  void join(uint32_t index);
  // Out of the list, if it is in it.
  void leave(uint32_t index);
  // The first in the list, of which there must be one.
  uint32_t take(uint32_t number);

  // What a CNM means, which arrived with `meta`. `number`: with Verdict::handled only.
  Verdict find(const PacketMeta& meta, const CongestionNotification& cnm, uint32_t& number) const;

  // To be called whenever one may have begun or ceased to limit its flow. True if it has begun to.
  bool count(uint32_t number, Time now);
  // How many limit their flows now.
  uint32_t limited() const { return limited_; }
  // Time that those of a CNPV have been limiting, summed up, since the last call.
  Time take_limited_time(int priority, Time now);

 private:
  struct Member {
    uint32_t point = kNone;
    uint32_t next = kNone;
    uint32_t previous = kNone;
    bool waits = false;
  };
  struct Group {
    std::vector<uint32_t> points;
    uint32_t limited = 0;
    Time since = 0;
    Time limited_time = 0;
  };
  // By what a CNM without CN-TAG finds its flow.
  struct Trace {
    uint64_t source = 0;  // MAC address, and the priority above it
    uint64_t destination = 0;
    uint64_t headers = 0;  // destination queue pair and UDP source port, or kAnyHeaders
    bool operator==(const Trace&) const = default;
  };
  static constexpr uint64_t kAnyHeaders = UINT64_MAX;
  struct TraceHash {
    size_t operator()(const Trace& trace) const;
  };
  struct Traced {
    uint32_t point;  // kSeveral
    uint32_t queue_pairs;
  };
  static constexpr uint32_t kSeveral = UINT32_MAX - 1;

  static uint32_t most_of_group(const NicParameters& parameters);
  uint64_t key_of(const QueuePair& qp, bool datagram) const;
  uint32_t point_for(uint64_t key, uint8_t priority, Time now);
  uint32_t make(uint64_t key, uint8_t priority, Time now);
  uint32_t take_reusable(uint8_t priority, bool only);
  void settle(Group& group, Time now);
  static uint64_t headers_in(std::span<const uint8_t> msdu);
  void add_trace(const Trace& trace, uint32_t point);
  void remove_trace(const Trace& trace);

  const NicParameters& parameters_;
  uint32_t places_;
  uint32_t limited_ = 0;
  uint64_t made_ = 0;
  std::vector<ReactionPoint> points_;
  std::vector<Member> members_;
  std::array<Group, kPriorities> groups_;
  std::unordered_map<uint64_t, uint32_t> flows_;  // keys
  std::deque<uint32_t> reusable_;                 // without members, the longest first
  std::unordered_map<Trace, Traced, TraceHash> traces_;
  std::vector<Trace> traces_of_;  // of queue pairs; source 0: none
};

}  // namespace weir
