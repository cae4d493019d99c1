// An ideal network for message graphs: each message is alone, and takes the latency of its way and its bytes at the rate of that.
// What a run on a simulated network takes longer than here is headers, acknowledgements, and congestion.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/describe.h"
#include "base/types.h"
#include "graph/graph_host.h"
#include "graph/graph_network.h"
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

class IdealNetwork final : public GraphNetwork {
 public:
  // As GraphNetwork's; all ranks begin at 0.
  IdealNetwork(MessageGraphColumns&& graph, const GraphParameters& parameters, std::vector<uint32_t> machine_of_rank,
               const Columns<IdealWay>& ways);

 private:
  void carry(const GraphHost::Outgoing& message) override;

  std::unordered_map<uint64_t, IdealWay> ways_;
};

}  // namespace weir
