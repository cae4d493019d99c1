#include "graph/ideal_network.h"

#include <utility>

#include "base/native_error.h"
#include "graph/transfer_time.h"

namespace weir {

IdealNetwork::IdealNetwork(MessageGraphColumns&& graph, const GraphParameters& parameters, std::vector<uint32_t> machine_of_rank,
                           const Columns<IdealWay>& ways)
    : GraphNetwork(std::move(graph), parameters, std::move(machine_of_rank), {}) {
  for (const IdealWay& way : ways) ways_.emplace(key(way.from, way.to), way);
}

void IdealNetwork::carry(const GraphHost::Outgoing& message) {
  const auto way = ways_.find(key(message.from, message.to));
  require(way != ways_.end(), "graph", "ranks that exchange messages have no way to each other");
  const auto [from, to, latency, rate] = way->second;
  const Time takes = rate == 0 ? 0 : transfer_time(static_cast<double>(message.bytes), static_cast<double>(rate));
  arrive(now() + latency + takes, message);
}

}  // namespace weir
