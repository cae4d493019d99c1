#include "graph/graph_traffic.h"

#include <algorithm>
#include <utility>

#include "base/native_error.h"

namespace weir {

GraphTraffic::GraphTraffic(PlacedGraph&& graph, size_t nics)
    : parameters_(graph.parameters),
      nic_of_rank_(std::move(graph.nic_of_rank)),
      graph_(std::move(graph.operations)),
      state_(graph_),
      connections_(std::move(graph.connections)) {
  const auto is_nic = [&](uint32_t nic) { return nic < nics; };
  require(
      nic_of_rank_.size() == graph_.ranks() && graph.begins.size() == graph_.ranks() && std::ranges::all_of(nic_of_rank_, is_nic),
      "graph", "each rank has a NIC and a time to begin");
  for (uint32_t nic = 0; nic < nics; ++nic) hosts_.emplace_back(GraphHost(graph_, state_, parameters_, nic_of_rank_, nic));
  for (uint32_t rank = graph_.ranks(); rank-- > 0;) {
    hosts_[nic_of_rank_[rank]].begins.push_back({graph.start + static_cast<Time>(graph.begins[rank]), rank});
  }
}

void GraphTraffic::begin(GraphNics& nics, const std::function<Sender(const GraphConnection&)>& sender_of, Time origin) {
  nics_ = &nics;
  for (const GraphConnection& connection : connections_) {
    require(connection.from < graph_.ranks() && connection.to < graph_.ranks(), "graph.connections", "they are between ranks");
    const Sender sender = sender_of(connection);
    require(nic_of_rank_[connection.from] == sender.nic, "graph.connections", "they lead from a rank's NIC");
    hosts_[sender.nic].connections.emplace(key(connection.from, connection.to), sender.index);
  }
  for (uint32_t nic = 0; nic < hosts_.size(); ++nic) {
    std::vector<Begin>& begins = hosts_[nic].begins;
    for (Begin& begin : begins) begin.at += origin;
    std::ranges::stable_sort(begins, std::ranges::greater{}, &Begin::at);
    wake_at(nic, next_of(hosts_[nic]));
  }
}

Time GraphTraffic::next_of(const Host& host) const {
  const Time begins = host.begins.empty() ? kNever : host.begins.back().at;
  return std::min(begins, host.operations.next_deadline());
}

void GraphTraffic::wake_at(uint32_t nic, Time at) {
  if (at >= hosts_[nic].wakes) return;
  hosts_[nic].wakes = at;
  nics_->wake_host(nic, at);
}

// A wake that was asked for before an earlier one finds nothing to do.
void GraphTraffic::wake(uint32_t nic, Time now) {
  Host& host = hosts_[nic];
  if (host.wakes <= now) host.wakes = kNever;
  for (; !host.begins.empty() && host.begins.back().at <= now; host.begins.pop_back()) {
    host.operations.begin(host.begins.back().at, host.begins.back().rank);
  }
  host.operations.advance(now);
  for (const GraphHost::Outgoing& message : host.operations.outgoing()) {
    const auto connection = host.connections.find(key(message.from, message.to));
    require(connection != host.connections.end(), "graph", "ranks that exchange messages have no stream");
    ++host.under_way;
    nics_->post(now, nic, connection->second, message.word, message.bytes);
  }
  host.operations.outgoing().clear();
  settle(nic, now);
}

void GraphTraffic::hear(uint32_t nic, bool arrived, uint32_t word, Time now) {
  Host& host = hosts_[nic];
  if (arrived) {
    host.operations.arrived(now, word);
  } else {
    --host.under_way;
    host.operations.acknowledged(now, word);
  }
  settle(nic, now);
}

void GraphTraffic::settle(uint32_t nic, Time now) {
  Host& host = hosts_[nic];
  host.ended.store(host.operations.ended(), std::memory_order_relaxed);
  wake_at(nic, host.operations.outgoing().empty() ? next_of(host) : now);
}

uint64_t GraphTraffic::ended() const {
  uint64_t sum = 0;
  for (const Host& host : hosts_) sum += host.ended.load(std::memory_order_relaxed);
  return sum;
}

bool GraphTraffic::moves() const {
  return std::ranges::any_of(hosts_, [this](const Host& host) { return host.under_way > 0 || next_of(host) != kNever; });
}

}  // namespace weir
