#include "simulation/simulation.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/huge_pages.h"
#include "endpoint/samples.h"
#include "simulation/under_way.h"
#include "switching/samples.h"

namespace weir {

// Message graphs on the NICs of the fabric.
class Simulation::Graph final : public HostWork, public GraphNics, public LearnedPhases::Network {
 public:
  // Of the configuration there is left which NICs are of one machine.
  Graph(SimulationConfig& config, HostWork* programs) : traffic(taken(*config.graph), config.nics.size()), programs_(programs) {}
  void begin(Simulation& simulation) {
    simulation_ = &simulation;
    fabric_ = &simulation.fabric_;
    if (simulation.config_.fast_forward) {
      finished_.resize(simulation.config_.flows.size());
      phases = std::make_unique<LearnedPhases>(simulation.config_, *this, messages(), machines_of(simulation.config_));
    }
    traffic.begin(*this, [&](const GraphConnection& connection) {
      const Place place = simulation.sender(connection.stream);
      return GraphTraffic::Sender{place.nic, place.index};
    });
    HugePages pages;
    traffic.gather(pages);
    pages.collapse();
  }
  void wake(uint32_t nic, Time now) override {
    if (phases != nullptr) phases->wake(nic, now);
    traffic.wake(nic, now);
    if (programs_ != nullptr) programs_->wake(nic, now);
  }
  void heard(uint32_t nic, Time now) override {
    if (programs_ != nullptr) programs_->heard(nic, now);
  }
  void punted(uint32_t nic, Time now, std::span<const uint8_t> frame) override {
    if (programs_ != nullptr) programs_->punted(nic, now, frame);
  }
  void post(Time now, uint32_t nic, uint32_t queue_pair, uint32_t word, uint64_t bytes) override {
    if (phases != nullptr) return phases->begin(now, simulation_->layout_.flows_of(nic)[queue_pair], word, bytes);
    fabric_->nic_at(nic).post(now, queue_pair, word, bytes);
  }
  void wake_host(uint32_t nic, Time at) override { fabric_->wake_host(nic, at); }
  void send(Time now, uint32_t flow, uint32_t word, uint64_t bytes) override {
    const Place place = simulation_->sender(flow);
    fabric_->nic_at(place.nic).post(now, place.index, word, bytes);
  }
  uint64_t received(uint32_t flow) const override { return simulation_->counters(simulation_->receiver(flow)).rx_bytes; }
  void tell(uint32_t nic, bool arrived, uint32_t word, Time now) override { traffic.hear(nic, arrived, word, now); }
  void finish(uint32_t flow, uint64_t bytes, Time posted, Time now) override {
    simulation_->heard_.front().finished.push_back({flow, finished_[flow]++, bytes, posted, now});
  }

  GraphTraffic traffic;
  std::unique_ptr<LearnedPhases> phases;  // null: all is packets

 private:
  // From machine to machine.
  uint64_t messages() const {
    const MessageGraph& graph = traffic.graph();
    uint64_t count = 0;
    for (uint32_t rank = 0; rank < graph.ranks(); ++rank) {
      for (uint32_t i = graph.first(rank); i < graph.first(rank + 1); ++i) {
        count += graph.kind(i) == OperationKind::send && traffic.apart(rank, graph.peer(i)) ? 1 : 0;
      }
    }
    return count;
  }
  static PlacedGraph taken(PlacedGraph& graph) {
    PlacedGraph whole = std::move(graph);
    graph.machine_of_nic = whole.machine_of_nic;
    return whole;
  }

  HostWork* programs_;  // on the same hosts; null: none
  Simulation* simulation_ = nullptr;
  Fabric* fabric_ = nullptr;
  std::vector<uint64_t> finished_;  // messages by flow
};

// Listens to the streams of one NIC.
class Simulation::Listener final : public MessageListener {
 public:
  Listener(Simulation& simulation, uint32_t nic) : simulation_(simulation), nic_(nic) {}

  void message_completed(uint32_t qpn, uint64_t number, uint64_t bytes, Time posted, Time now) override {
    const uint32_t flow = flow_of(qpn);
    if (simulation_.learned() != nullptr) {
      posted_ = posted;
      bytes_ = bytes;
      return;
    }
    heard().finished.push_back({flow, number, bytes, posted, now});
    if (!simulation_.config_.flows[flow].reliable) ++heard().ended;
  }
  void posted_message(Posted what, uint32_t qpn, uint32_t word, Time now) override {
    Graph& graph = *simulation_.graph_;
    const bool arrived = what == Posted::arrived;
    if (graph.phases != nullptr && !graph.phases->heard(now, flow_of(qpn), arrived, word) && !arrived) {
      graph.finish(flow_of(qpn), bytes_, posted_, now);
    }
    graph.traffic.hear(nic_, arrived, word, now);
  }
  void stream_ended(uint32_t qpn, bool failed, Time) override {
    ++(failed ? heard().failed : heard().ended);
    const uint32_t flow = flow_of(qpn);
    const bool reads = simulation_.config_.flows[flow].stream.operation == Operation::read;
    const Place peer = reads ? simulation_.sender(flow) : simulation_.receiver(flow);
    simulation_.fabric_.close_stream(nic_, peer.nic, peer.index);
  }

 private:
  Heard& heard() { return simulation_.heard_[simulation_.fabric_.partition_of_nic(nic_)]; }
  uint32_t flow_of(uint32_t qpn) const { return simulation_.layout_.flows_of(nic_)[qpn - kFirstStreamQpn]; }
  Simulation& simulation_;
  uint32_t nic_;
  // The message that has just been completed, where phases are remembered.
  Time posted_ = 0;
  uint64_t bytes_ = 0;
};

Simulation::Simulation(SimulationConfig config, Sharing sharing, HostWork* hosts)
    : config_(std::move(config)),
      layout_(config_, config_.nics.size()),
      graph_(config_.graph ? std::make_unique<Graph>(config_, hosts) : nullptr),
      fabric_(config_, queue_pairs(), divided(std::move(sharing)),
              graph_ != nullptr ? static_cast<HostWork*>(graph_.get()) : hosts),
      forward_(config_.fast_forward && !config_.graph ? std::make_unique<FastForward>(config_, fabric_, layout_) : nullptr),
      next_sample_(config_.sample_interval > 0 ? 0 : kNever),
      reset_at_(config_.reset_after),
      heard_(fabric_.partition_count()) {
  for (const SampledQueue& queue : config_.sampled_queues) {
    fabric_.switch_at(queue.device).statistics().keep_distribution(queue.port, queue.priority);
  }
  for (size_t i = 0; config_.all_distributions && i < fabric_.switch_count(); ++i)
    fabric_.switch_at(i).statistics().keep_distributions();
  for (const NetworkFlow& flow : config_.flows) starts_.push_back(flow.start);
  std::ranges::sort(starts_);
  size_t groups = 0;
  for (const SimulatedSwitch& s : config_.switches) groups += s.parameters.ports.size() * kPriorities;
  pauses_.resize(groups);
  if (graph_ != nullptr) graph_->begin(*this);
}

Simulation::~Simulation() = default;

Sharing Simulation::divided(Sharing sharing) {
  // Phases are of the whole network, and found in the order of one thread.
  if (config_.graph && config_.fast_forward) {
    config_.threads = 1;
    sharing.division.clear();
  }
  if (config_.fewer_threads) config_.threads = worthwhile_threads(config_, config_.threads);
  if (sharing.division.empty()) sharing.division = divide(config_, partitions_for(config_.threads));
  return sharing;
}

// The queue pairs of each NIC, whose streams have a listener then.
std::vector<std::vector<QueuePairParameters>> Simulation::queue_pairs() {
  const std::vector<NetworkNic> nics(config_.nics.begin(), config_.nics.end());
  std::vector<std::vector<QueuePairParameters>> pairs;
  for (uint32_t nic = 0; nic < nics.size(); ++nic) {
    pairs.push_back(layout_.queue_pairs(nic, nics, config_.nics[0].parameters.mac));
    listeners_.push_back(std::make_unique<Listener>(*this, nic));
    config_.nics[nic].parameters.listener = listeners_.back().get();
  }
  return pairs;
}

bool Simulation::run(Time until, uint64_t events) {
  const uint64_t limit = fabric_.events() + events;
  for (;;) {
    const Time boundary = std::min({next_sample_, reset_at_, until});
    if (!advance(boundary, limit)) return false;
    if (boundary == next_sample_) {
      sample();
      next_sample_ += config_.sample_interval;
    }
    if (boundary == reset_at_) {
      if (forward_ != nullptr) forward_->distributions_restart();
      for (size_t i = 0; i < fabric_.switch_count(); ++i) {
        fabric_.switch_at(i).advance(fabric_.now());
        fabric_.switch_at(i).statistics().reset_distributions();
      }
      reset_at_ = kNever;
    }
    if (boundary == until) return true;
  }
}

bool Simulation::advance(Time to, uint64_t limit) {
  for (;;) {
    Time stop = to;
    if (forward_ != nullptr) {
      if (forward_->skipping()) forward_->skip(to);
      if (forward_->skipping()) return true;
      stop = std::min(forward_->inside(to), forward_->next_look());
    }
    const bool reached = fabric_.run(stop, limit);
    gather();
    if (!reached || forward_ == nullptr) return reached;
    if (stop == forward_->next_look()) forward_->look();
    if (stop == forward_->inside(to)) return true;
  }
}

// Devices live through a window of time one after another: what ends in it is not in the order of time.
void Simulation::gather() {
  for (Heard& heard : heard_) {
    for (Finished& one : heard.finished) {
      if (forward_ != nullptr) one = {one.flow, one.number, one.bytes, forward_->outside(one.start), forward_->outside(one.end)};
      finished_.push_back(one);
    }
    heard.finished.clear();
  }
  std::ranges::sort(finished_, {}, [](const Finished& one) { return std::tie(one.end, one.flow, one.number); });
}

uint64_t Simulation::flows_ended() const {
  uint64_t sum = 0;
  for (const Heard& heard : heard_) sum += heard.ended;
  return sum;
}

const GraphTraffic* Simulation::graph() const { return graph_ == nullptr ? nullptr : &graph_->traffic; }

const LearnedPhases* Simulation::learned() const { return graph_ == nullptr ? nullptr : graph_->phases.get(); }

uint64_t Simulation::flows_failed() const {
  uint64_t sum = 0;
  for (const Heard& heard : heard_) sum += heard.failed;
  return sum;
}

uint64_t Simulation::flows_started() const {
  return static_cast<uint64_t>(std::ranges::upper_bound(starts_, now()) - starts_.begin());
}

const QpCounters& Simulation::counters(Place place) { return fabric_.nic_at(place.nic).queue_pairs()[place.index].counters; }

std::vector<uint32_t> Simulation::under_way() const { return packets_under_way(fabric_, config_, layout_); }

std::vector<Simulation::QueueLengths> Simulation::queue_lengths() {
  std::vector<QueueLengths> kept;
  for (uint32_t i = 0; i < fabric_.switch_count(); ++i) {
    SoftSwitch& device = fabric_.switch_at(i);
    device.advance(fabric_.now());
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      for (uint8_t p = 0; p < kPriorities; ++p) {
        if (!device.statistics().keeps_distribution(port, p)) continue;
        const Histogram& lengths = device.statistics().distribution(port, p);
        if (lengths.max() > 0) kept.push_back({{i, port, p}, lengths});
      }
    }
  }
  return kept;
}

void Simulation::settle() { settle_counters(fabric_); }

CounterTables Simulation::all_counters() {
  settle();
  CounterTables counters = count(fabric_, layout_, config_.flows.size());
  if (forward_ != nullptr) forward_->add_to(counters);
  return counters;
}

// Counters of row `row` of a table, with what was skipped.
template <class Counters>
Counters Simulation::with_skipped(Counters counters, CounterTable CounterTables::*table, size_t row) const {
  if (forward_ != nullptr) forward_->add_to(counters, table, row);
  return counters;
}

// Rows of ports and priorities before those of a switch.
size_t Simulation::first_group(size_t device) const {
  size_t groups = 0;
  for (size_t i = 0; i < device; ++i) groups += config_.switches[i].parameters.ports.size() * kPriorities;
  return groups;
}

// Where time inside stands, states are those at which it does, and counters go on.
void Simulation::sample() {
  const size_t first = records_.size();
  const Time at = fabric_.now();
  for (const uint32_t flow : config_.sampled_flows) {
    const auto from = sender(flow);
    const bool controls =
        fabric_.nic_at(from.nic).observation().controls(fabric_.nic_at(from.nic).queue_pairs()[from.index].parameters);
    const auto end = controls ? from : receiver(flow);
    records_.push_back(sample_sender(fabric_.nic_at(end.nic), end.index, at, 0, flow));
    const QpCounters received = with_skipped(counters(receiver(flow)), &CounterTables::receivers, flow);
    records_.push_back(sample_receiver(received, at, 0, flow));
  }
  for (const auto& [index, port, priority] : config_.sampled_queues) {
    SoftSwitch& device = fabric_.switch_at(index);
    const size_t group = first_group(index) + place_of(port, priority);
    const auto counters = with_skipped(device.counters(port, priority), &CounterTables::switch_priorities, group);
    records_.push_back(sample_queue(device, counters, at, static_cast<uint16_t>(index), port, priority));
  }
  size_t group = 0;
  for (uint16_t i = 0; i < fabric_.switch_count(); ++i) {
    SoftSwitch& device = fabric_.switch_at(i);
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      for (int p = 0; p < kPriorities; ++p, ++group) {
        const SwitchPriorityCounters& counted = device.counters(port, p);
        if (forward_ == nullptr && pauses_[group] == counted.pfc_tx_packets) continue;
        const auto counters = with_skipped(counted, &CounterTables::switch_priorities, group);
        const uint64_t sent = counters.pfc_tx_packets;
        if (std::exchange(pauses_[group], sent) != sent) records_.push_back(sample_pause(device, counters, at, i, port, p));
      }
    }
  }
  for (size_t i = first; i < records_.size(); ++i) records_[i].time = now();
}

}  // namespace weir
