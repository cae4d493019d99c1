// A message graph on a network without packets: machines that carry its operations out, and messages that take a time. How long,
// says the kind of network.
#pragma once

#include <cstdint>
#include <vector>

#include "base/indexed_heap.h"
#include "base/types.h"
#include "graph/graph_host.h"
#include "graph/message_graph.h"

namespace weir {

class GraphNetwork {
 public:
  GraphNetwork(const GraphNetwork&) = delete;
  GraphNetwork& operator=(const GraphNetwork&) = delete;

  // Goes on until nothing is left to happen, or `events` messages have moved: then false.
  bool run(uint64_t events);
  Time now() const { return now_; }
  uint64_t ended() const;
  const MessageGraph& graph() const { return graph_; }
  const GraphState& state() const { return state_; }

 protected:
  // `machine_of_rank`: ranks of one machine reach each other by its inside. `begins`: when each rank begins, or nothing: all at
  // 0. Throws NativeError INVALID_CONFIG.
  GraphNetwork(MessageGraphColumns&& graph, const GraphParameters& parameters, std::vector<uint32_t> machine_of_rank,
               const std::vector<double>& begins);
  ~GraphNetwork() = default;

  static uint64_t key(uint32_t from, uint32_t to) { return uint64_t{from} << 32 | to; }
  // Hands over a message that has come whole; its sender hears of it at the same time.
  void arrive(Time at, const GraphHost::Outgoing& message);

 private:
  struct Begin {
    Time at;
    uint32_t rank;
  };
  struct Arrival {
    Time at;
    uint64_t sequence;
    GraphHost::Outgoing message;
  };
  static bool later(const Arrival& a, const Arrival& b) { return a.at != b.at ? a.at > b.at : a.sequence > b.sequence; }

  // A message is on its way from now on: sooner or later it arrive()s.
  virtual void carry(const GraphHost::Outgoing& message) = 0;
  // Nothing more happens now: what is under way is reckoned with.
  virtual void settle() {}
  // When advance() has something to do; kNever: nothing.
  virtual Time next_advance() const { return kNever; }
  virtual void advance() {}

  Time next() const;
  void collect(uint32_t machine);

  GraphParameters parameters_;
  std::vector<uint32_t> machine_of_rank_;
  MessageGraph graph_;
  GraphState state_;
  std::vector<GraphHost> machines_;
  std::vector<Begin> begins_;      // the latest first
  std::vector<Arrival> arrivals_;  // a heap
  IndexedHeap timers_;             // machines by their next deadlines
  uint64_t sequence_ = 0;
  Time now_ = 0;
};

}  // namespace weir
