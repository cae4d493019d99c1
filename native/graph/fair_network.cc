#include "graph/fair_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/native_error.h"
#include "graph/transfer_time.h"

namespace weir {

FairNetwork::FairNetwork(MessageGraphColumns&& graph, const GraphParameters& parameters, std::vector<uint32_t> machine_of_rank,
                         const std::vector<double>& begins, std::vector<double> rates, std::span<const Way> ways)
    : GraphNetwork(std::move(graph), parameters, std::move(machine_of_rank), begins),
      shares_(std::move(rates)),
      ends_(static_cast<uint32_t>(ways.size())),
      carried_(shares_.links()) {
  flow_of_ranks_.reserve(ways.size());
  flows_.reserve(ways.size());
  for (const Way& way : ways) {
    const auto is_link = [&](const FairHop& hop) { return hop.link < shares_.links(); };
    require(std::ranges::all_of(way.hops, is_link), "graph", "a way is of links");
    flow_of_ranks_.emplace(key(way.from, way.to), shares_.add(way.hops));
    flows_.push_back({.latency = way.latency});
  }
}

void FairNetwork::carry(const GraphHost::Outgoing& message) {
  const auto found = flow_of_ranks_.find(key(message.from, message.to));
  require(found != flow_of_ranks_.end(), "graph", "ranks that exchange messages have no way to each other");
  const uint32_t flow = found->second;
  uint32_t place = free_;
  if (place == kNone) {
    place = static_cast<uint32_t>(queued_.size());
    queued_.push_back({message, kNone});
  } else {
    free_ = queued_[place].next;
    queued_[place] = {message, kNone};
  }
  Flow& own = flows_[flow];
  if (own.first != kNone) {
    queued_[std::exchange(own.last, place)].next = place;
    return;
  }
  own.first = own.last = place;
  if (begin(flow)) shares_.start(flow);
}

bool FairNetwork::begin(uint32_t flow) {
  Flow& own = flows_[flow];
  while (own.first != kNone && queued_[own.first].message.bytes == 0) finish(flow);
  if (own.first == kNone) return false;
  own.left = static_cast<double>(queued_[own.first].message.bytes);
  own.since = now();
  return true;
}

void FairNetwork::finish(uint32_t flow) {
  Flow& own = flows_[flow];
  const uint32_t place = own.first;
  const GraphHost::Outgoing& message = queued_[place].message;
  for (const FairHop& hop : shares_.way(flow)) carried_[hop.link] += static_cast<double>(message.bytes) * hop.share;
  arrive(now() + own.latency, message);
  own.first = queued_[place].next;
  queued_[place].next = std::exchange(free_, place);
}

void FairNetwork::advance() {
  const uint32_t flow = ends_.top();
  finish(flow);
  if (begin(flow)) return schedule(flow);
  ends_.remove(flow);
  flows_[flow].rate = 0;
  shares_.stop(flow);
}

void FairNetwork::schedule(uint32_t flow) {
  const Flow& own = flows_[flow];
  ends_.set(flow, own.since + (std::isinf(own.rate) ? 0 : transfer_time(own.left, own.rate)));
}

void FairNetwork::settle() {
  if (!shares_.settle()) return;
  for (const uint32_t flow : shares_.changed()) {
    Flow& own = flows_[flow];
    if (own.since < now()) own.left = std::max(0.0, own.left - own.rate * static_cast<double>(now() - own.since) / 8e9);
    own.since = now();
    own.rate = shares_.rate(flow);
    schedule(flow);
  }
}

}  // namespace weir
