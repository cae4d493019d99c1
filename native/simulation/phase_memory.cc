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

void PhaseMemory::learn(const Alone& key, Times times, uint32_t stretch) {
  Mean& mean = alone_[key];
  if (mean.stretch != stretch) mean = {.stretch = stretch};
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
  if (with_[messages.front().flow].size() >= kPhasesOfFlow) return;
  kept_ += messages.size();
  const auto number = static_cast<uint32_t>(phases_.size());
  for (const PhaseMessage& message : messages) {
    if (message.number == 0) with_[message.flow].push_back(number);
  }
  fill(phases_.emplace_back(), std::move(messages), tolerance_, least_);
}

void PhaseMemory::replace(uint32_t phase, std::vector<PhaseMessage>&& messages) {
  fill(phases_[phase], std::move(messages), tolerance_, least_);
}

void PhaseMemory::fill(Phase& phase, std::vector<PhaseMessage>&& messages, double tolerance, Time least) {
  phase.messages = std::move(messages);
  phase.places.clear();
  Time each = 0;
  for (uint32_t i = 0; i < phase.messages.size(); ++i) {
    const PhaseMessage& message = phase.messages[i];
    phase.places.emplace(key(message.flow, message.number), i);
    each += message.arrives - message.begins;
  }
  const auto mean = static_cast<double>(each) / static_cast<double>(phase.messages.size());
  phase.slack = std::max(least, static_cast<Time>(tolerance * mean));
}

std::span<const uint32_t> PhaseMemory::with(uint32_t flow) const {
  const auto found = with_.find(flow);
  return found == with_.end() ? std::span<const uint32_t>{} : std::span<const uint32_t>(found->second);
}

uint32_t PhaseMemory::place(uint32_t number, const PhaseMessage& message) const {
  const Phase& phase = phases_[number];
  const auto found = phase.places.find(key(message.flow, message.number));
  if (found == phase.places.end()) return kNone;
  const PhaseMessage& own = phase.messages[found->second];
  const bool fits = own.bytes == message.bytes && own.age == message.age && message.begins <= own.begins + phase.slack &&
                    message.begins >= own.begins - phase.slack;
  return fits ? found->second : kNone;
}

}  // namespace weir
