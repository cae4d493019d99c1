#include "graph/graph_traffic.h"

#include <numeric>
#include <utility>

#include "base/native_error.h"

namespace weir {

std::vector<uint32_t> checked_machines(std::vector<uint32_t> machine_of_nic, size_t nics) {
  if (machine_of_nic.empty()) {
    machine_of_nic.resize(nics);
    std::iota(machine_of_nic.begin(), machine_of_nic.end(), 0);
  }
  bool fits = machine_of_nic.size() == nics;
  for (uint32_t nic = 0; fits && nic < nics; ++nic) {
    const uint32_t first = machine_of_nic[nic];
    fits = first <= nic && machine_of_nic[first] == first;
  }
  require(fits, "graph.machine_of_nic", "there is the first NIC of its machine for each");
  return machine_of_nic;
}

GraphTraffic::GraphTraffic(PlacedGraph&& graph, size_t nics)
    : parameters_(graph.parameters),
      nic_of_rank_(std::move(graph.nic_of_rank)),
      machine_of_nic_(checked_machines(std::move(graph.machine_of_nic), nics)),
      graph_(std::move(graph.operations)),
      state_(graph_),
      connections_(std::move(graph.connections)) {
  const auto is_nic = [&](uint32_t nic) { return nic < nics; };
  require(
      nic_of_rank_.size() == graph_.ranks() && graph.begins.size() == graph_.ranks() && std::ranges::all_of(nic_of_rank_, is_nic),
      "graph", "each rank has a NIC and a time to begin");
  for (const uint32_t nic : nic_of_rank_) machine_of_rank_.push_back(machine_of_nic_[nic]);
  for (uint32_t nic = 0; nic < nics; ++nic) machines_.emplace_back(GraphHost(graph_, state_, parameters_, machine_of_rank_, nic));
  for (uint32_t rank = graph_.ranks(); rank-- > 0;) {
    machines_[machine_of_rank_[rank]].begins.push_back({graph.start + static_cast<Time>(graph.begins[rank]), rank});
  }
}

void GraphTraffic::begin(GraphNics& nics, const std::function<Sender(const GraphConnection&)>& sender_of, Time origin) {
  nics_ = &nics;
  for (const GraphConnection& connection : connections_) {
    require(connection.from < graph_.ranks() && connection.to < graph_.ranks(), "graph.connections", "they are between ranks");
    const Sender sender = sender_of(connection);
    require(nic_of_rank_[connection.from] == sender.nic, "graph.connections", "they lead from a rank's NIC");
    machines_[machine_of_nic_[sender.nic]].connections.emplace(key(connection.from, connection.to), sender);
  }
  for (uint32_t number = 0; number < machines_.size(); ++number) {
    std::vector<Begin>& begins = machines_[number].begins;
    for (Begin& begin : begins) begin.at += origin;
    std::ranges::stable_sort(begins, std::ranges::greater{}, &Begin::at);
    wake_at(number, next_of(machines_[number]));
  }
}

void GraphTraffic::gather(HugePages& pages) const {
  graph_.gather(pages);
  pages.add(state_.waits);
  pages.add(state_.links);
  pages.add(state_.started);
  pages.add(state_.ended);
}

Time GraphTraffic::next_of(const Machine& machine) const {
  const Time begins = machine.begins.empty() ? kNever : machine.begins.back().at;
  return std::min(begins, machine.operations.next_deadline());
}

void GraphTraffic::wake_at(uint32_t number, Time at) {
  if (at >= machines_[number].wakes) return;
  machines_[number].wakes = at;
  nics_->wake_host(number, at);
}

// A wake that was asked for before an earlier one finds nothing to do.
void GraphTraffic::wake(uint32_t nic, Time time) {
  const uint32_t number = machine_of_nic_[nic];
  Machine& machine = machines_[number];
  const Time now = advanced(machine, time);
  if (machine.wakes <= now) machine.wakes = kNever;
  for (; !machine.begins.empty() && machine.begins.back().at <= now; machine.begins.pop_back()) {
    machine.operations.begin(machine.begins.back().at, machine.begins.back().rank);
  }
  machine.operations.advance(now);
  for (const GraphHost::Outgoing& message : machine.operations.outgoing()) {
    const auto connection = machine.connections.find(key(message.from, message.to));
    require(connection != machine.connections.end(), "graph", "ranks that exchange messages have no stream");
    ++machine.under_way;
    nics_->post(now, connection->second.nic, connection->second.index, message.word, message.bytes);
  }
  machine.operations.outgoing().clear();
  settle(number, now);
}

void GraphTraffic::hear(uint32_t nic, bool arrived, uint32_t word, Time time) {
  const uint32_t number = machine_of_nic_[nic];
  Machine& machine = machines_[number];
  const Time now = advanced(machine, time);
  if (arrived) {
    machine.operations.arrived(now, word);
  } else {
    --machine.under_way;
    machine.operations.acknowledged(now, word);
  }
  settle(number, now);
}

void GraphTraffic::settle(uint32_t number, Time now) {
  Machine& machine = machines_[number];
  machine.ended.store(machine.operations.ended(), std::memory_order_relaxed);
  wake_at(number, machine.operations.outgoing().empty() ? next_of(machine) : now);
}

uint64_t GraphTraffic::ended() const {
  uint64_t sum = 0;
  for (const Machine& machine : machines_) sum += machine.ended.load(std::memory_order_relaxed);
  return sum;
}

bool GraphTraffic::moves() const {
  const auto moves = [this](const Machine& machine) { return machine.under_way > 0 || next_of(machine) != kNever; };
  return std::ranges::any_of(machines_, moves);
}

}  // namespace weir
