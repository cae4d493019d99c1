#include "simulation/phase_memory.h"

#include <algorithm>
#include <utility>

namespace weir {
namespace {

// Messages alone whose mean is taken.
constexpr Time kAveraged = 64;
// Phases that are kept of those that have a flow in them, and messages in all.
constexpr size_t kPhasesOfFlow = 16;
constexpr uint64_t kMostKept = 8'000'000;

}  // namespace

void PhaseMemory::learn(const Alone& key, Times times) {
  Mean& mean = alone_[key];
  if (mean.count == kAveraged) return;
  mean.arrives += times.arrives;
  mean.acknowledged += times.acknowledged;
  ++mean.count;
}

bool PhaseMemory::recall(const Alone& key, Times& times) const {
  const auto found = alone_.find(key);
  if (found == alone_.end()) return false;
  const Mean& mean = found->second;
  times = {mean.arrives / mean.count, mean.acknowledged / mean.count};
  return true;
}

void PhaseMemory::learn(std::vector<PhaseMessage>&& messages) {
  if (kept_ + messages.size() > kMostKept) return;
  std::vector<uint32_t>& siblings = with_[messages.front().flow];
  if (siblings.size() >= kPhasesOfFlow) return;
  kept_ += messages.size();
  const auto number = static_cast<uint32_t>(phases_.size());
  Phase& phase = phases_.emplace_back();
  phase.messages = std::move(messages);
  Time each = 0;
  for (uint32_t i = 0; i < phase.messages.size(); ++i) {
    const PhaseMessage& message = phase.messages[i];
    phase.places.emplace(key(message.flow, message.number), i);
    phase.length = std::max(phase.length, message.arrives);
    each += message.arrives - message.begins;
    if (message.number == 0) with_[message.flow].push_back(number);
  }
  phase.slack = std::max(least_, static_cast<Time>(tolerance_ * static_cast<double>(each) / static_cast<double>(phase.messages.size())));
}

std::span<const uint32_t> PhaseMemory::with(uint32_t flow) const {
  const auto found = with_.find(flow);
  return found == with_.end() ? std::span<const uint32_t>{} : std::span<const uint32_t>(found->second);
}

uint32_t PhaseMemory::place(uint32_t number, uint32_t flow, uint32_t message, uint64_t bytes, Time begins) const {
  const Phase& phase = phases_[number];
  const auto found = phase.places.find(key(flow, message));
  if (found == phase.places.end()) return kNone;
  const PhaseMessage& own = phase.messages[found->second];
  const bool fits = own.bytes == bytes && begins <= own.begins + phase.slack && begins >= own.begins - phase.slack;
  return fits ? found->second : kNone;
}

}  // namespace weir
