// An ideal network for message graphs: each message is alone, and takes the latency of its way and its bytes at the rate of that.
// What a run on a simulated network takes longer than here is headers, acknowledgements, and congestion.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/describe.h"
#include "base/indexed_heap.h"
#include "base/types.h"
#include "graph/graph_host.h"
#include "graph/message_graph.h"

namespace weir {

// A way that messages take, in one direction.
struct IdealWay {
  uint32_t from = 0;
  uint32_t to = 0;
  Time latency = 0;
  Rate rate = 0;
};
void describe(auto& v, Of<IdealWay> auto& way) {
  v.type("NativeIdealWays", "By pair of ranks that exchange messages, one direction each.");
  v("from", way.from, field::any("Rank."));
  v("to", way.to, field::any("Rank."));
  v("latency", way.latency, field::ns("Of a message of no bytes."));
  v("rate", way.rate, field::bps("Of its bytes; 0: they take no time."));
}

class IdealNetwork {
 public:
  // `machine_of_rank`: ranks of one machine reach each other by its inside.
  IdealNetwork(MessageGraphColumns&& graph, const GraphParameters& parameters, std::vector<uint32_t> machine_of_rank,
               const Columns<IdealWay>& ways);

  // Goes on until nothing is left to happen, or `events` messages have moved: then false.
  bool run(uint64_t events);
  Time now() const { return now_; }
  uint64_t ended() const;
  const MessageGraph& graph() const { return graph_; }
  const GraphState& state() const { return state_; }

 private:
  struct Arrival {
    Time at;
    uint64_t sequence;
    GraphHost::Outgoing message;
  };
  static bool later(const Arrival& a, const Arrival& b) { return a.at != b.at ? a.at > b.at : a.sequence > b.sequence; }
  static uint64_t key(uint32_t from, uint32_t to) { return uint64_t{from} << 32 | to; }

  void collect(uint32_t machine);

  GraphParameters parameters_;
  std::vector<uint32_t> machine_of_rank_;
  MessageGraph graph_;
  GraphState state_;
  std::unordered_map<uint64_t, IdealWay> ways_;
  std::vector<GraphHost> machines_;
  std::vector<Arrival> arrivals_;  // a heap
  IndexedHeap timers_;             // machines by their next deadlines
  uint64_t sequence_ = 0;
  Time now_ = 0;
};

}  // namespace weir
