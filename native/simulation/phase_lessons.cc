// What LearnedPhases learns of phases that are over, and how it judges what it knew of them.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "simulation/learned_phases.h"

namespace weir {
namespace {

// Whether a message that begins then waits for one of the same flow that comes at `before`: the last byte of that had not left.
bool waits(const MessageWays& ways, uint32_t flow, Time begins, Time before) {
  return begins < before - ways.hops(flow).back().after;
}

}  // namespace

void LearnedPhases::close(uint32_t place) {
  Component& own = components_[place];
  report_.phases += 1;
  const auto recalled = [this](uint32_t number) { return !messages_[number].real; };
  if (std::ranges::all_of(own.members, recalled)) report_.recalled += 1;
  if (own.real && own.clean && !own.line) remember(place);
  for (const uint32_t number : own.members) {
    ++messages_[number].generation;
    free_messages_.push_back(number);
  }
  own.members.clear();
  ++own.version;
  free_components_.push_back(place);
}

void LearnedPhases::remember(uint32_t place) {
  Component& own = components_[place];
  const uint32_t known = compare(own);
  if (std::ranges::any_of(own.members, [this](uint32_t member) { return !messages_[member].real; })) return;
  recount(own);
  std::vector<PhaseMessage> messages;
  for (const uint32_t number : own.members) {
    const Message& message = messages_[number];
    messages.push_back(described(own, message));
  }
  if (known != PhaseMemory::kNone) return memory_.replace(known, std::move(messages));
  memory_.learn(std::move(messages));
}

PhaseMessage LearnedPhases::described(const Component& own, const Message& message) const {
  return {message.flow,
          message.number,
          message.bytes,
          message.age,
          message.begins - own.begins,
          message.arrives - own.begins,
          message.acknowledged - own.begins};
}

// What memory would have said of a phase that was simulated: which one; kNone: it is not known.
uint32_t LearnedPhases::compare(const Component& own) {
  Component copy = own;
  recount(copy);
  find_candidates(copy);
  std::erase_if(copy.candidates, [&](uint32_t phase) { return memory_.messages(phase).size() != own.members.size(); });
  if (copy.candidates.empty()) return PhaseMemory::kNone;
  const uint32_t phase = copy.candidates.front();
  Time length = 0, foretold = 0;
  for (const uint32_t number : own.members) {
    const Message& message = messages_[number];
    const uint32_t at = memory_.place(phase, described(own, message));
    const PhaseMessage& known = memory_.messages(phase)[at];
    length = std::max(length, message.arrives - own.begins);
    foretold = std::max(foretold, message.begins - own.begins + known.arrives - known.begins);
    judge_.compare_message(message.acknowledged - message.begins, known.acknowledged - known.begins, message.bytes);
  }
  judge_.compare(length, foretold, true);
  return phase;
}

// A message has come.
void LearnedPhases::count(const Message& message) {
  const auto took = static_cast<double>(message.arrives - message.begins);
  took_ += took;
  if (message.real && !components_[message.component].line) took_contended_ += took;
}

// ---- lines ----

// When the messages of a line should come, from the first on of which that was not known when it began.
void LearnedPhases::expect(const Component& own) {
  size_t place = own.members.size() - 1;
  const auto unknown = [&](size_t i) {
    const Message& message = messages_[own.members[i]];
    return !message.has_arrived && message.expected == kNever;
  };
  while (place > 0 && unknown(place - 1)) --place;
  for (; place < own.members.size(); ++place) {
    expect(messages_[own.members[place]], place == 0 ? nullptr : &messages_[own.members[place - 1]]);
  }
}

// As others did behind another, or alone.
void LearnedPhases::expect(Message& message, const Message* before) const {
  const uint32_t kind = ways_.kind(message.flow);
  PhaseMemory::Times alone, behind;
  const bool known = memory_.recall({kind, message.age, false, message.bytes}, alone);
  if (known) {
    message.expected = message.begins + alone.arrives;
    message.answer = alone.acknowledged;
  }
  if (before == nullptr) return;
  const Time comes = before->has_arrived ? before->arrives : before->expected;
  if (comes != kNever && !waits(ways_, message.flow, message.begins, comes)) return;
  if (comes == kNever || !memory_.recall({kind, message.age, true, message.bytes}, behind)) {
    message.expected = kNever;
    return;
  }
  message.expected = std::max(known ? message.expected : 0, comes + behind.arrives);
  message.answer = behind.acknowledged;
}

// A message of a line is acknowledged that was sent as packets.
void LearnedPhases::learn_of_line(const Component& own, uint32_t number) {
  const Message& message = messages_[number];
  if (!own.line || !own.clean || message.sent != message.bytes) return;
  if (message.expected != kNever) {
    judge_.compare(message.arrives - message.begins, message.expected - message.begins, false);
    judge_.compare_message(message.acknowledged - message.begins, message.expected + message.answer - message.begins,
                           message.bytes);
  }
  const uint32_t kind = ways_.kind(message.flow);
  const Time answer = message.acknowledged - message.arrives;
  const uint32_t stretch = judge_.stretches();
  const auto place = std::ranges::find(own.members, number);
  const Message* const before = place == own.members.begin() ? nullptr : &messages_[*std::prev(place)];
  if (before == nullptr || !waits(ways_, message.flow, message.begins, before->arrives)) {
    memory_.learn({kind, message.age, false, message.bytes}, {message.arrives - message.begins, answer}, stretch);
  } else if (before->real) {
    memory_.learn({kind, message.age, true, message.bytes}, {message.arrives - before->arrives, answer}, stretch);
  }
}

LearnedReport LearnedPhases::report() const {
  LearnedReport out = report_;
  out.known = static_cast<double>(memory_.phases() + memory_.alone());
  judge_.tell(out);
  if (took_ > 0) out.contended = took_contended_ / took_;
  return out;
}

}  // namespace weir
