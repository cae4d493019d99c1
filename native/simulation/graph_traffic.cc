#include "simulation/graph_traffic.h"

#include <algorithm>
#include <utility>

#include "base/native_error.h"

namespace weir {

GraphTraffic::GraphTraffic(SimulatedGraph&& graph, size_t nics)
    : parameters_(graph.parameters),
      nic_of_rank_(std::move(graph.nic_of_rank)),
      graph_(std::move(graph.operations)),
      state_(graph_),
      connections_(std::move(graph.connections)) {
  const auto is_nic = [&](uint32_t nic) { return nic < nics; };
  require(
      nic_of_rank_.size() == graph_.ranks() && graph.start.size() == graph_.ranks() && std::ranges::all_of(nic_of_rank_, is_nic),
      "simulation.graph", "each rank has a NIC and a start");
  hosts_.reserve(nics);
  for (uint32_t nic = 0; nic < nics; ++nic) hosts_.emplace_back(GraphHost(graph_, state_, parameters_, nic_of_rank_, nic));
  for (uint32_t rank = graph_.ranks(); rank-- > 0;) {
    hosts_[nic_of_rank_[rank]].begins.push_back({static_cast<Time>(graph.start[rank]), rank});
  }
  for (Host& host : hosts_) std::ranges::stable_sort(host.begins, std::ranges::greater{}, &Begin::at);
}

void GraphTraffic::begin(Fabric& fabric, const std::function<Sender(uint32_t)>& sender_of) {
  fabric_ = &fabric;
  for (const GraphConnection& connection : connections_) {
    const Sender sender = sender_of(connection.flow);
    require(connection.from < graph_.ranks() && nic_of_rank_[connection.from] == sender.nic, "simulation.graph.connections",
            "they lead from a rank's NIC");
    hosts_[sender.nic].connections.emplace(key(connection.from, connection.to), sender.index);
  }
  for (uint32_t nic = 0; nic < hosts_.size(); ++nic) wake_at(nic, next_of(hosts_[nic]));
}

Time GraphTraffic::next_of(const Host& host) const {
  const Time begins = host.begins.empty() ? kNever : host.begins.back().at;
  return std::min(begins, host.operations.next_deadline());
}

void GraphTraffic::wake_at(uint32_t nic, Time at) {
  if (at >= hosts_[nic].wakes) return;
  hosts_[nic].wakes = at;
  fabric_->wake_host(nic, at);
}

// A wake that was asked for before an earlier one finds nothing to do.
void GraphTraffic::wake(uint32_t nic, Time now) {
  Host& host = hosts_[nic];
  if (now == host.wakes) host.wakes = kNever;
  for (; !host.begins.empty() && host.begins.back().at <= now; host.begins.pop_back()) {
    host.operations.begin(now, host.begins.back().rank);
  }
  host.operations.advance(now);
  SoftNic& device = fabric_->nic_at(nic);
  for (const GraphHost::Outgoing& message : host.operations.outgoing()) {
    const auto connection = host.connections.find(key(message.from, message.to));
    require(connection != host.connections.end(), "graph", "ranks that exchange messages have no flow");
    ++host.under_way;
    device.post(now, connection->second, message.word, message.bytes);
  }
  host.operations.outgoing().clear();
  wake_at(nic, next_of(host));
}

void GraphTraffic::arrived(uint32_t nic, uint32_t word, Time now) {
  Host& host = hosts_[nic];
  host.operations.arrived(now, word);
  wake_at(nic, host.operations.outgoing().empty() ? next_of(host) : now);
}

void GraphTraffic::acknowledged(uint32_t nic, uint32_t word, Time now) {
  Host& host = hosts_[nic];
  --host.under_way;
  host.operations.acknowledged(now, word);
  wake_at(nic, host.operations.outgoing().empty() ? next_of(host) : now);
}

uint64_t GraphTraffic::ended() const {
  uint64_t sum = 0;
  for (const Host& host : hosts_) sum += host.operations.ended();
  return sum;
}

bool GraphTraffic::moves() const {
  return std::ranges::any_of(hosts_, [this](const Host& host) { return host.under_way > 0 || next_of(host) != kNever; });
}

}  // namespace weir
