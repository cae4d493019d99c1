#include "graph/ideal_network.h"

#include <algorithm>
#include <utility>

#include "base/native_error.h"

namespace weir {

IdealNetwork::IdealNetwork(MessageGraphColumns&& graph, const GraphParameters& parameters, std::vector<uint32_t> machine_of_rank,
                           const Columns<IdealWay>& ways)
    : parameters_(parameters),
      machine_of_rank_(std::move(machine_of_rank)),
      graph_(std::move(graph)),
      state_(graph_),
      timers_(machine_of_rank_.empty() ? 1 : *std::ranges::max_element(machine_of_rank_) + 1) {
  require(machine_of_rank_.size() == graph_.ranks(), "graph", "not every rank has a machine");
  for (const IdealWay& way : ways) ways_.emplace(key(way.from, way.to), way);
  const uint32_t machines = *std::ranges::max_element(machine_of_rank_) + 1;
  machines_.reserve(machines);
  for (uint32_t i = 0; i < machines; ++i) machines_.emplace_back(graph_, state_, parameters_, machine_of_rank_, i);
  for (uint32_t rank = 0; rank < graph_.ranks(); ++rank) {
    machines_[machine_of_rank_[rank]].begin(0, rank);
    collect(machine_of_rank_[rank]);
  }
}

void IdealNetwork::collect(uint32_t machine) {
  GraphHost& own = machines_[machine];
  for (const GraphHost::Outgoing& message : own.outgoing()) {
    const auto way = ways_.find(key(message.from, message.to));
    require(way != ways_.end(), "graph", "ranks that exchange messages have no way to each other");
    const Rate rate = way->second.rate;
    const double takes = rate == 0 ? 0 : static_cast<double>(message.bytes) * 8e9 / static_cast<double>(rate);
    arrivals_.push_back({now_ + way->second.latency + static_cast<Time>(takes), sequence_++, message});
    std::ranges::push_heap(arrivals_, later);
  }
  own.outgoing().clear();
  const Time next = own.next_deadline();
  if (next != kNever) {
    timers_.set(machine, next);
  } else if (timers_.contains(machine)) {
    timers_.remove(machine);
  }
}

bool IdealNetwork::run(uint64_t events) {
  for (; events > 0; --events) {
    const Time timer = timers_.empty() ? kNever : timers_.top_key();
    const Time arrival = arrivals_.empty() ? kNever : arrivals_.front().at;
    if (timer == kNever && arrival == kNever) return true;
    now_ = std::min(timer, arrival);
    if (arrival <= timer) {
      const GraphHost::Outgoing message = arrivals_.front().message;
      std::ranges::pop_heap(arrivals_, later);
      arrivals_.pop_back();
      const uint32_t to = machine_of_rank_[message.to], from = machine_of_rank_[message.from];
      machines_[to].arrived(now_, message.word);
      collect(to);
      machines_[from].acknowledged(now_, message.word);
      collect(from);
    } else {
      const uint32_t machine = timers_.top();
      machines_[machine].advance(now_);
      collect(machine);
    }
  }
  return false;
}

uint64_t IdealNetwork::ended() const {
  uint64_t sum = 0;
  for (const GraphHost& machine : machines_) sum += machine.ended();
  return sum;
}

}  // namespace weir
