// The flows of a NIC: a flow for each queue pair, and, where congestion control hears CNMs, groups of queue pairs that are one
// flow together; the group that a queue pair belongs to, the turns that its queue pairs take, and the group that a congestion
// notification message (CNM) means. Queues of the host's own stack (endpoint/stack_queues.h) have their numbers behind the queue
// pairs, and groups as these: each its own, whatever FlowSelection says, so that a reaction point of the host's is that of a hash
// of five-tuples.
//
// IEEE 802.1Q clause 31 gives an end station, for each congestion notification priority value (CNPV), a group of reaction points
// (RPG) with parameters in common (FlowGrouping::rpgs), up to rpppMaxRps of them; what passes through one of them is a flow. Here
// a reaction point is a group's flow:
//
// - Groups are what FlowSelection says. A datagram queue pair has many destinations: where these would make the group it is one
//   by itself. The first FlowGrouping::most groups of a CNPV have a flow each; further ones share these, picked by a hash.
// - Queue pairs wait in a list for their group's flow. One at a time is let go; it sends one packet and joins the end of the
//   list. So they take turns, packet by packet, and a packet costs the same however many they are.
// - A group that loses its last queue pair keeps its rate, until its flow is needed for another: a program that connects anew
//   does not start anew.
// - Flow identifiers of CN-TAGs are the groups' numbers, from 1 on.
//
// A CNM changes a rate if its priority is a CNPV here, it states a feedback, and it names a group:
// - with a CN-TAG by that, if the group has the encapsulated priority, sends to the encapsulated destination address (of one
//   destination only where it has one), and has the CNM's destination as its source;
// - without one by the RoCEv2 headers it encapsulates (destination queue pair and UDP source port) together with both
//   addresses, or by the five-tuple if the host's stack sent the frame; where it encapsulates less, by the addresses alone. That
//   may be ambiguous.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "endpoint/flow.h"
#include "endpoint/nic_parameters.h"
#include "endpoint/queue_pair.h"
#include "wire/packet.h"
#include "wire/qcn.h"

namespace weir {

class FlowTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kMost = 65'535;  // groups, as there are flow identifiers; CNPVs have equal shares of them

  // Holds queue pairs with indexes below `queue_pairs`, and the host's queues behind them. `parameters` must outlive it, and keep
  // their algorithm; it is told of others by take_parameters(). `counters`: the NIC's; its gauge of held flows begins at 0.
  FlowTable(const NicParameters& parameters, uint32_t queue_pairs, uint32_t stack_queues, NicCounters& counters);

  void take_parameters();  // to be called after they have changed

  // Flows of queue pairs, and of the host's queues, have their indexes, those of groups follow, up to as many again.
  Flow& operator[](uint32_t flow) { return flows_[flow]; }
  const Flow& operator[](uint32_t flow) const { return flows_[flow]; }
  uint32_t size() const { return static_cast<uint32_t>(flows_.size()); }
  // Queue pairs, and queues of the host's: indexes of groups begin here.
  uint32_t senders() const { return static_cast<uint32_t>(members_.size()); }
  // Both are for groups.
  uint16_t flow_id(uint32_t flow) const { return static_cast<uint16_t>(flow - senders() + 1); }
  uint8_t priority_of(uint32_t group) const { return groups_[group - senders()].priority; }

  // The queue pair's own flow begins anew, as if it had never sent.
  void reset(uint32_t index, const QueuePair& qp, Time now);
  // Its cap, bit/s, becomes another; 0: none.
  void set_cap(uint32_t index, Rate cap);

  // Returns a queue pair's group; kNone if it is in none.
  uint32_t group_of(uint32_t index) const { return members_[index].group; }
  // The queue pair becomes part of its group, if there are groups and its priority is a CNPV.
  void bind(uint32_t index, const QueuePair& qp, Time now);
  // The same for a queue of the host's. Idempotent.
  void bind_stack(uint32_t index, uint8_t priority, Time now);
  // It is no part of it any more, and neither waits for its turn nor has it.
  void unbind(uint32_t index);

  // Turns.
  bool waits(uint32_t index) const { return members_[index].waits; }
  void join(uint32_t index);
  // Takes it out of the list, if it is in it.
  void leave(uint32_t index);
  // The first in the list, of which there must be one.
  uint32_t take(uint32_t group);

  // Finds the group that a CNM means, which arrived with `meta`. Null; else the counter of CNMs that mean none, which says why.
  uint64_t NicCounters::*find(const PacketMeta& meta, const CongestionNotification& cnm, uint32_t& group) const;
  // The same of one that came as a datagram, to `own`: the frame that it is about has to be from there.
  uint64_t NicCounters::*find(const PacketMeta& meta, const IpAddress& own, const CongestionNotification& cnm,
                              uint32_t& group) const;

  // Must be called whenever a flow may have begun or ceased to be held: a look at all takes too long. True if it has begun.
  bool count(uint32_t flow, Time now) { return flows_[flow].miscounted() && recount(flow, now); }
  // Time that groups of a CNPV have been held, summed up, since the last call.
  Time take_held_time(int priority, Time now);

 private:
  struct Member {
    uint32_t group = kNone;
    uint32_t next = kNone;
    uint32_t previous = kNone;
    bool waits = false;
  };
  struct Group {
    uint64_t source_mac = 0;       // that of its queue pairs; 0: several
    uint64_t destination_mac = 0;  // the same
    uint64_t key = 0;
    uint32_t members = 0;  // queue pairs
    uint8_t priority = 0;
    bool reusable = false;  // it is in the list of those without members
  };
  // A CNPV.
  struct Priority {
    std::vector<uint32_t> groups;
    uint32_t held = 0;
    Time since = 0;
    Time held_time = 0;
  };
  // A CNM without CN-TAG finds its group by this.
  struct Trace {
    uint64_t source = 0;       // MAC address, and the priority above it; where CNMs are datagrams of IP addresses
    uint64_t destination = 0;  // the same for destinations
    uint64_t headers = 0;      // destination queue pair and UDP source port, or kAnyHeaders
    bool operator==(const Trace&) const = default;
  };
  static constexpr uint64_t kAnyHeaders = UINT64_MAX;
  struct TraceHash {
    size_t operator()(const Trace& trace) const;
  };
  struct Traced {
    uint32_t group;  // kSeveral
    uint32_t queue_pairs;
  };
  static constexpr uint32_t kSeveral = UINT32_MAX - 1;

  uint32_t most_of_priority() const;
  Group& group(uint32_t flow) { return groups_[flow - senders()]; }
  const Group& group(uint32_t flow) const { return groups_[flow - senders()]; }
  uint64_t key_of(const QueuePair& qp) const;
  uint32_t group_for(uint64_t key, uint8_t priority, Time now);
  uint32_t enter(uint32_t index, uint64_t key, uint8_t priority, uint64_t source_mac, uint64_t destination_mac, Time now);
  uint32_t make(uint64_t key, uint8_t priority, Time now);
  uint32_t take_reusable(uint8_t priority, bool only);
  bool recount(uint32_t flow, Time now);
  static void account(Priority& priority, Time now);
  static uint64_t headers_in(std::span<const uint8_t> msdu);
  uint64_t NicCounters::*refuse(const CongestionNotification& cnm) const;
  uint64_t NicCounters::*find_sampled(const PacketMeta& meta, const Trace& trace, const CongestionNotification& cnm,
                                      uint32_t& group) const;
  void add_trace(const Trace& trace, uint32_t group);
  void remove_trace(const Trace& trace);

  const NicParameters& parameters_;
  std::vector<CongestionParameters> rpgs_;  // for each priority: flows of groups refer to these
  bool grouped_;
  uint32_t queue_pairs_;
  uint8_t stack_priorities_ = 0;  // priorities of the host's queues that have groups
  uint32_t places_;               // places for groups
  NicCounters& counters_;
  uint64_t made_ = 0;
  std::vector<Flow> flows_;
  std::vector<Member> members_;
  std::vector<Group> groups_;
  std::array<Priority, kPriorities> priorities_;
  std::unordered_map<uint64_t, uint32_t> by_key_;
  std::deque<uint32_t> reusable_;  // groups without members, the longest first
  std::unordered_map<Trace, Traced, TraceHash> traces_;
  std::vector<Trace> traces_of_;  // traces of queue pairs; source 0: none
};

}  // namespace weir
