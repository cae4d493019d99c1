// A network for message graphs on which flows have max-min fair shares of links, without packets: there are no queues, marks,
// pauses or losses, and congestion control is perfect and immediate. A link has its whole rate for bytes of messages, as on the
// ideal network: headers and acknowledgements take nothing.
//
// The messages of one rank to another follow each other, as on a queue pair: together they are a flow. A message is there when
// its last byte has gone, and the latency of its way later.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/indexed_heap.h"
#include "base/types.h"
#include "graph/fair_shares.h"
#include "graph/graph_host.h"
#include "graph/graph_network.h"
#include "graph/message_graph.h"

namespace weir {

class FairNetwork final : public GraphNetwork {
 public:
  // The way of messages of one rank to another, on a network of links.
  struct Way {
    uint32_t from = 0;
    uint32_t to = 0;
    Time latency = 0;
    std::span<const FairHop> hops;
  };

  // As GraphNetwork's. `rates`: of links, bit/s; 0: no limit. `ways`: of each pair of ranks on different machines that exchange
  // messages.
  FairNetwork(MessageGraphColumns&& graph, const GraphParameters& parameters, std::vector<uint32_t> machine_of_rank,
              const std::vector<double>& begins, std::vector<double> rates, std::span<const Way> ways);

  // Bytes of messages that each link has carried.
  const std::vector<double>& carried() const { return carried_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Messages of a flow that have not gone: a list in queued_.
  struct Queued {
    GraphHost::Outgoing message;
    uint32_t next;
  };
  struct Flow {
    Time latency = 0;
    uint32_t first = kNone;
    uint32_t last = kNone;
    // Of the first message, at a time, from which on it has a rate.
    double left = 0;
    Time since = 0;
    double rate = 0;
  };

  void carry(const GraphHost::Outgoing& message) override;
  void settle() override;
  Time next_advance() const override { return ends_.empty() ? kNever : ends_.top_key(); }
  void advance() override;
  // The first message of a flow has gone.
  void finish(uint32_t flow);
  // Messages of no bytes go at once, and the first that has some is begun; false: there is none.
  bool begin(uint32_t flow);
  void schedule(uint32_t flow);

  FairShares shares_;
  std::unordered_map<uint64_t, uint32_t> flow_of_ranks_;
  std::vector<Flow> flows_;
  std::vector<Queued> queued_;
  uint32_t free_ = kNone;  // of queued_
  IndexedHeap ends_;       // flows by the ends of their first messages
  std::vector<double> carried_;
};

}  // namespace weir
