#include "graph/graph_host.h"

#include <algorithm>

#include "graph/transfer_time.h"

namespace weir {

GraphState::GraphState(const MessageGraph& graph)
    : waits(graph.size()), links(graph.size(), Matching::kNone), started(graph.size(), kNever), ended(graph.size(), kNever) {
  first_free.reserve(graph.ranks());
  for (uint32_t rank = 0; rank < graph.ranks(); ++rank) {
    uint32_t processors = 1;
    for (uint32_t i = graph.first(rank); i < graph.first(rank + 1); ++i) {
      waits[i] = graph.waits(i);
      processors = std::max(processors, graph.processor(i) + 1u);
    }
    first_free.push_back(static_cast<uint32_t>(free.size()));
    free.resize(free.size() + 1 + processors);
  }
}

GraphHost::GraphHost(const MessageGraph& graph, GraphState& state, const GraphParameters& parameters,
                     std::span<const uint32_t> machine_of_rank, uint32_t number)
    : graph_(graph),
      state_(state),
      parameters_(parameters),
      machine_of_rank_(machine_of_rank),
      number_(number),
      matching_(graph, state.links) {}

// ---- what happens ----

void GraphHost::begin(Time now, uint32_t rank) {
  for (uint32_t i = graph_.first(rank); i < graph_.first(rank + 1); ++i) {
    if (graph_.waits(i) == 0) ready_.push_back(i);
  }
  run(now);
}

void GraphHost::arrived(Time now, uint32_t word) {
  const uint32_t message = word & ~kAsks;
  if (message >= graph_.size() || graph_.kind(message) != OperationKind::send) return;
  const uint32_t from = graph_.rank_of(message), to = graph_.peer(message);
  const bool answers = (word & kAsks) != 0 && is_own(from);
  // Words come from the network: those that are for nobody here say nothing.
  if (!answers && !is_own(to)) return;
  if ((word & kAsks) == 0) {
    deliver(message, now);
  } else if (answers) {
    // The receive is there.
    outgoing_.push_back({from, to, message, graph_.bytes(message)});
  } else {
    const uint32_t receive = matching_.arrive(to, from, message);
    if (receive != Matching::kNone) take(message, receive, now);
  }
  run(now);
}

void GraphHost::acknowledged(Time now, uint32_t word) {
  if ((word & kAsks) != 0 || graph_.bytes(word) <= parameters_.eager) return;
  mark_ended(word, now);
  run(now);
}

void GraphHost::advance(Time now) {
  while (!timers_.empty() && timers_.front().at <= now) {
    const Timer timer = timers_.front();
    std::ranges::pop_heap(timers_, later);
    timers_.pop_back();
    switch (timer.what) {
      case What::starts:
        if (graph_.kind(timer.operation) == OperationKind::send) {
          send(timer.operation, timer.at);
        } else {
          mark_started(timer.operation, timer.at);
        }
        break;
      case What::ends:
        mark_ended(timer.operation, timer.at);
        break;
      case What::arrives:
        if (graph_.bytes(timer.operation) > parameters_.eager) mark_ended(timer.operation, timer.at);
        deliver(timer.operation, timer.at);
        break;
    }
    run(timer.at);
  }
}

// ---- operations ----

// Not by recursion: chains of operations that take no time can be long.
void GraphHost::run(Time now) {
  for (size_t i = 0; i < ready_.size(); ++i) start(ready_[i], now);
  ready_.clear();
}

void GraphHost::start(uint32_t operation, Time now) {
  if (graph_.kind(operation) == OperationKind::receive) return receive(operation, now);
  Time& free = processor_free(operation);
  const Time begin = std::max(now, free);
  if (graph_.kind(operation) == OperationKind::send) {
    return begin > now ? schedule(begin, operation, What::starts) : send(operation, now);
  }
  free = begin + graph_.duration(operation);
  if (begin > now) {
    schedule(begin, operation, What::starts);
  } else {
    mark_started(operation, now);
  }
  if (free > now) return schedule(free, operation, What::ends);
  mark_ended(operation, now);
}

void GraphHost::send(uint32_t operation, Time now) {
  mark_started(operation, now);
  const uint32_t from = graph_.rank_of(operation), to = graph_.peer(operation);
  const uint64_t bytes = graph_.bytes(operation);
  if (is_own(to)) {
    Time& free = state_.free[state_.first_free[from]];
    const Time begin = std::max(now, free);
    const auto rate = static_cast<double>(parameters_.inside_rate);
    const Time takes = rate == 0 ? 0 : transfer_time(static_cast<double>(bytes), rate);
    free = begin + takes;
    schedule(free + parameters_.inside_latency, operation, What::arrives);
  } else if (asks_first(operation)) {
    outgoing_.push_back({from, to, operation | kAsks, 0});
  } else {
    outgoing_.push_back({from, to, operation, bytes});
  }
  if (bytes <= parameters_.eager) mark_ended(operation, now);
}

void GraphHost::receive(uint32_t operation, Time now) {
  mark_started(operation, now);
  const uint32_t message = matching_.post(graph_.rank_of(operation), operation);
  if (message != Matching::kNone) take(message, operation, now);
}

// A receive and a message have met.
void GraphHost::take(uint32_t message, uint32_t receive, Time now) {
  const uint32_t from = graph_.rank_of(message);
  state_.links[receive] = message;
  if (!asks_first(message) || is_own(from)) return mark_ended(receive, now);
  state_.links[message] = receive;
  outgoing_.push_back({graph_.peer(message), from, message | kAsks, 0});
}

// All bytes of a message are there.
void GraphHost::deliver(uint32_t message, Time now) {
  const uint32_t from = graph_.rank_of(message);
  if (asks_first(message) && !is_own(from)) {
    const uint32_t receive = state_.links[message];
    if (receive != Matching::kNone && state_.ended[receive] == kNever) mark_ended(receive, now);
    return;
  }
  const uint32_t receive = matching_.arrive(graph_.peer(message), from, message);
  if (receive != Matching::kNone) take(message, receive, now);
}

void GraphHost::mark_started(uint32_t operation, Time now) {
  state_.started[operation] = now;
  release(operation, true);
}

void GraphHost::mark_ended(uint32_t operation, Time now) {
  state_.ended[operation] = now;
  ++ended_;
  release(operation, false);
}

void GraphHost::release(uint32_t operation, bool start_only) {
  graph_.successors(operation, [&](uint32_t successor, bool awaits_start) {
    if (awaits_start == start_only && --state_.waits[successor] == 0) ready_.push_back(successor);
  });
}

void GraphHost::schedule(Time at, uint32_t operation, What what) {
  timers_.push_back({at, sequence_++, operation, what});
  std::ranges::push_heap(timers_, later);
}

Time& GraphHost::processor_free(uint32_t operation) {
  return state_.free[state_.first_free[graph_.rank_of(operation)] + 1 + graph_.processor(operation)];
}

}  // namespace weir
