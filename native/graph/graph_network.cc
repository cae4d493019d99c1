#include "graph/graph_network.h"

#include <algorithm>
#include <utility>

#include "base/native_error.h"

namespace weir {

GraphNetwork::GraphNetwork(MessageGraphColumns&& graph, const GraphParameters& parameters, std::vector<uint32_t> machine_of_rank,
                           const std::vector<double>& begins)
    : parameters_(parameters),
      machine_of_rank_(std::move(machine_of_rank)),
      graph_(std::move(graph)),
      state_(graph_),
      timers_(machine_of_rank_.empty() ? 1 : *std::ranges::max_element(machine_of_rank_) + 1) {
  require(machine_of_rank_.size() == graph_.ranks(), "graph", "not every rank has a machine");
  require(begins.empty() || begins.size() == graph_.ranks(), "graph", "not every rank has a time to begin");
  const uint32_t machines = *std::ranges::max_element(machine_of_rank_) + 1;
  machines_.reserve(machines);
  for (uint32_t i = 0; i < machines; ++i) machines_.emplace_back(graph_, state_, parameters_, machine_of_rank_, i);
  for (uint32_t rank = graph_.ranks(); rank-- > 0;) {
    begins_.push_back({begins.empty() ? 0 : static_cast<Time>(begins[rank]), rank});
  }
  std::ranges::stable_sort(begins_, std::ranges::greater{}, &Begin::at);
}

void GraphNetwork::collect(uint32_t machine) {
  GraphHost& own = machines_[machine];
  for (const GraphHost::Outgoing& message : own.outgoing()) carry(message);
  own.outgoing().clear();
  const Time next = own.next_deadline();
  if (next != kNever) {
    timers_.set(machine, next);
  } else if (timers_.contains(machine)) {
    timers_.remove(machine);
  }
}

void GraphNetwork::arrive(Time at, const GraphHost::Outgoing& message) {
  arrivals_.push_back({at, sequence_++, message});
  std::ranges::push_heap(arrivals_, later);
}

Time GraphNetwork::next() const {
  const Time begin = begins_.empty() ? kNever : begins_.back().at;
  const Time arrival = arrivals_.empty() ? kNever : arrivals_.front().at;
  const Time timer = timers_.empty() ? kNever : timers_.top_key();
  return std::min({begin, arrival, timer, next_advance()});
}

bool GraphNetwork::run(uint64_t events) {
  for (; events > 0; --events) {
    if (next() != now_) settle();
    const Time at = next();
    if (at == kNever) return true;
    now_ = at;
    if (!begins_.empty() && begins_.back().at == now_) {
      const uint32_t rank = begins_.back().rank;
      begins_.pop_back();
      machines_[machine_of_rank_[rank]].begin(now_, rank);
      collect(machine_of_rank_[rank]);
    } else if (next_advance() == now_) {
      advance();
    } else if (!arrivals_.empty() && arrivals_.front().at == now_) {
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

uint64_t GraphNetwork::ended() const {
  uint64_t sum = 0;
  for (const GraphHost& machine : machines_) sum += machine.ended();
  return sum;
}

}  // namespace weir
