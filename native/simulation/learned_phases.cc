#include "simulation/learned_phases.h"

#include <algorithm>
#include <span>
#include <utility>

#include "simulation/division.h"

namespace weir {
namespace {

// Part of a phase's length by which begins may differ from what is remembered.
constexpr double kTolerance = 0.02;
// What is left of a message when it is no more in the way of others, as a part of it.
constexpr double kTail = 0.01;
// Messages of a phase that is remembered, at most; a run that has a longer one is simulated from there on.
constexpr size_t kMostMembers = 20'000;
// How often a flow's phases may go on unlike what is remembered before those that it begins are only recalled as phases of
// several.
constexpr uint8_t kMostSurprises = 3;
// Whether it is worth it is looked at after so many messages, and again after as many.
constexpr uint64_t kLook = 1'024;
constexpr double kWorthwhile = 0.1;
// Part of the phases that may go on unlike what is remembered.
constexpr double kMostLeft = 0.05;
}  // namespace

LearnedPhases::LearnedPhases(const SimulationConfig& config, Network& network, uint64_t messages,
                             std::vector<uint32_t> machine_of_nic)
    : config_(config),
      network_(network),
      machine_of_nic_(std::move(machine_of_nic)),
      expected_(messages),
      window_(longest_window(config)),
      memory_(kTolerance, window_),
      ways_(config),
      flows_(config.flows.size()),
      uses_(2 * config.links.size()),
      due_(config.nics.size()),
      wakes_(config.nics.size(), kNever),
      judge_(messages, config.fast_forward->share) {
  report_.reason = phases_refusal(config);
  off_ = !report_.reason.empty();
}

// ---- messages begin ----

void LearnedPhases::begin(Time now, uint32_t flow, uint32_t word, uint64_t bytes) {
  ++begun_;
  report_.messages += 1;
  report_.bytes += static_cast<double>(bytes);
  here_ = machine_of_nic_[config_.flows[flow].from];
  if (!off_) look(now);
  if (off_ && flows_[flow].delayed == 0) {
    sent_bytes_ += static_cast<double>(bytes);
    return network_.send(now, flow, word, bytes);
  }
  touched(now, flow);
  uint32_t number = 0;
  if (free_messages_.empty()) {
    number = static_cast<uint32_t>(messages_.size());
    messages_.emplace_back();
  } else {
    number = free_messages_.back();
    free_messages_.pop_back();
  }
  Message& own = messages_[number];
  own = {.flow = flow,
         .word = word,
         .number = 0,
         .component = 0,
         .generation = own.generation + 1,
         .version = 0,
         .bytes = bytes,
         .sent = 0,
         .position = 0,
         .begins = now,
         .age = flows_[flow].age,
         .real = false,
         .arrives = kNever,
         .acknowledged = kNever,
         .expected = kNever,
         .answer = 0,
         .has_arrived = false,
         .is_acknowledged = false};
  flows_[flow].age = 1;
  const bool fresh = touched_.empty();
  const uint32_t place = join(number);
  Component& component = components_[place];
  for (const MessageHop& hop : ways_.hops(flow)) uses_[hop.direction].push_back({number, own.generation, hop.after});
  if (fresh) {
    expect(component);
    if (!off_) find_candidates(component);
    component.alone = flows_[flow].surprises < kMostSurprises && own.expected != kNever;
    component.real = component.judged = off_ || simulates(flow, component.known());
  } else if (component.line) {
    expect(component);
    if (component.real && !component.judged && component.clean && own.expected != kNever) {
      component.real = false;
      component.alone = true;
    } else {
      component.alone &= own.expected != kNever;
    }
  }
  if (component.real) {
    own.real = true;
    own.sent = bytes;
    if (component.judged) judge_.took(component.known(), bytes);
    send_at(number, now);
    if (component.members.size() > kMostMembers) {
      turn_off(now);
      report_.reason = "messages meet others without an end: phases are too long to be remembered";
    }
    return;
  }
  go_on(place, now);
}

// Whether a phase that begins now is simulated whatever is known.
bool LearnedPhases::simulates(uint32_t flow, bool known) {
  if (judge_.takes(begun_, known, report_.bytes - sent_bytes_)) return true;
  if (!flows_[flow].again) return false;
  flows_[flow].again = false;
  return true;
}

void LearnedPhases::look(Time now) {
  if (begun_ % kLook != 0) return;
  if (begun_ < expected_ / 10) return;
  if (report_.skipped_bytes >= kWorthwhile * report_.bytes && report_.left <= kMostLeft * report_.phases) return;
  turn_off(now);
  report_.reason = "phases did not repeat themselves: too little came from memory";
}

void LearnedPhases::send(uint32_t number, Time now) {
  const Message& message = messages_[number];
  flows_[message.flow].sent += message.sent;
  messages_[number].position = flows_[message.flow].sent;
  sent_.emplace(key(message.flow, message.word), number);
  network_.send(now, message.flow, message.word, message.sent);
}

// At once where that is the machine at hand, and none of its flow waits to be sent.
void LearnedPhases::send_at(uint32_t number, Time now) {
  const Message& message = messages_[number];
  const uint32_t nic = config_.flows[message.flow].from;
  Flow& own = flows_[message.flow];
  sent_bytes_ += static_cast<double>(message.sent);
  if (machine_of_nic_[nic] == here_ && own.delayed == 0) return send(number, now);
  ++own.delayed;
  schedule(nic, now, {now, 0, What::send, number, message.version, message.generation});
}

// Whether much of a message has not yet left a link from which it takes `after` to come.
bool LearnedPhases::meets(const Message& message, Time after, Time now) const {
  if (message.has_arrived || !message.real) {
    const Time tail = static_cast<Time>(kTail * static_cast<double>(message.arrives - message.begins));
    return message.arrives - after - tail > now;
  }
  if (message.position == 0) return true;
  const uint64_t received = network_.received(message.flow);
  const double left = message.position > received ? static_cast<double>(message.position - received) : 0;
  const double ns_per_byte = ways_.ns_per_byte(message.flow);
  const double on_the_way = ns_per_byte > 0 ? static_cast<double>(after) / ns_per_byte : 0;
  return left > kTail * static_cast<double>(message.sent) + on_the_way;
}

// What comes from memory is simulated from now on, or messages that follow would not wait for it.
void LearnedPhases::turn_off(Time now) {
  off_ = true;
  for (uint32_t place = 0; place < components_.size(); ++place) {
    if (!components_[place].members.empty() && !components_[place].real) leave(place, now);
  }
}

// Fills touched_ with the components that a message meets.
void LearnedPhases::touched(Time now, uint32_t flow) {
  touched_.clear();
  for (const MessageHop& hop : ways_.hops(flow)) {
    std::vector<Use>& uses = uses_[hop.direction];
    std::erase_if(uses, [&](const Use& use) {
      const Message& message = messages_[use.message];
      if (message.generation != use.generation) return true;
      if (std::ranges::find(touched_, message.component) != touched_.end()) return false;
      if (!meets(message, use.after, now)) return message.has_arrived;
      touched_.push_back(message.component);
      return false;
    });
  }
  std::ranges::sort(touched_);
}

uint32_t LearnedPhases::number_of(Component& own, uint32_t flow) { return own.numbers[flow]++; }

// A message joins the components that it meets, which become one.
uint32_t LearnedPhases::join(uint32_t number) {
  Message& message = messages_[number];
  if (touched_.empty()) {
    uint32_t place = 0;
    if (free_components_.empty()) {
      place = static_cast<uint32_t>(components_.size());
      components_.emplace_back();
    } else {
      place = free_components_.back();
      free_components_.pop_back();
    }
    Component& own = components_[place];
    const uint32_t version = own.version + 1;
    own = Component{};
    own.version = version;
    own.begins = message.begins;
    own.members = {number};
    own.live = 1;
    own.numbers[message.flow] = 1;
    message.component = place;
    return place;
  }
  const auto size = [this](uint32_t one) { return components_[one].members.size(); };
  const uint32_t place = *std::ranges::max_element(touched_, {}, size);
  Component& own = components_[place];
  bool real = own.real;
  for (const uint32_t other : touched_) real |= components_[other].real;
  if (real) {
    for (const uint32_t other : touched_) {
      if (!components_[other].real) leave(other, message.begins);
    }
  }
  const bool merges = touched_.size() > 1;
  for (const uint32_t other : touched_) {
    if (other == place) continue;
    Component& gone = components_[other];
    for (const uint32_t member : gone.members) {
      messages_[member].component = place;
      own.members.push_back(member);
    }
    own.begins = std::min(own.begins, gone.begins);
    own.live += gone.live;
    own.clean &= gone.clean;
    own.judged &= gone.judged;
    gone.members.clear();
    ++gone.version;
    free_components_.push_back(other);
  }
  own.begins = std::min(own.begins, message.begins);
  own.members.push_back(number);
  message.component = place;
  ++own.live;
  own.line &= !merges && messages_[own.members.front()].flow == message.flow;
  own.alone &= own.line;
  const bool follows = !own.real || (own.judged && !off_);
  if (merges) {
    recount(own);
    if (follows) find_candidates(own);
  } else {
    message.number = number_of(own, message.flow);
    if (follows) {
      std::erase_if(own.candidates, [&](uint32_t phase) { return !fits(own, phase, number); });
    }
  }
  return place;
}

// Numbers the messages of each flow anew, in the order of their begins.
void LearnedPhases::recount(Component& own) {
  std::ranges::stable_sort(own.members, {}, [this](uint32_t member) { return messages_[member].begins; });
  own.numbers.clear();
  for (const uint32_t member : own.members) messages_[member].number = number_of(own, messages_[member].flow);
}

// ---- phases by memory ----

bool LearnedPhases::fits(const Component& own, uint32_t phase, uint32_t number) const {
  const Message& message = messages_[number];
  return memory_.place(phase, described(own, message)) != PhaseMemory::kNone;
}

void LearnedPhases::find_candidates(Component& own) {
  own.candidates.clear();
  own.place = 0;
  const std::span<const uint32_t> known = memory_.with(messages_[own.members.front()].flow);
  for (size_t i = known.size(); i-- > 0;) {
    const auto fit = [&](uint32_t member) { return fits(own, known[i], member); };
    if (std::ranges::all_of(own.members, fit)) own.candidates.push_back(known[i]);
  }
}

// Whether a message of the first candidate has not begun, and is late.
bool LearnedPhases::misses(Component& own, Time now) {
  const uint32_t phase = own.candidates.front();
  const std::vector<PhaseMessage>& messages = memory_.messages(phase);
  for (; own.place < messages.size(); ++own.place) {
    const PhaseMessage& next = messages[own.place];
    const auto begun = own.numbers.find(next.flow);
    if (begun != own.numbers.end() && begun->second > next.number) continue;
    return now - own.begins > next.begins + memory_.slack(phase) + window_;
  }
  return false;
}

// Something has begun, or has not: whatever still fits says what is to come.
void LearnedPhases::go_on(uint32_t place, Time now) {
  Component& own = components_[place];
  while (!own.candidates.empty() && misses(own, now)) {
    own.candidates.erase(own.candidates.begin());
    own.place = 0;
  }
  if (own.candidates.empty() && !own.alone) return leave(place, now);
  for (size_t i = 0; i < own.members.size(); ++i) foretell(own, own.members[i], now);
  if (own.candidates.empty()) return;
  const std::vector<PhaseMessage>& messages = memory_.messages(own.candidates.front());
  if (own.place == messages.size()) return;
  const Time at = own.begins + messages[own.place].begins + memory_.slack(own.candidates.front()) + window_ + 1;
  schedule(config_.flows[messages_[own.members.front()].flow].from, now, {at, 0, What::check, place, own.version, 0});
}

void LearnedPhases::foretell(Component& own, uint32_t number, Time now) {
  Message& message = messages_[number];
  if (message.real) return;
  Time arrives = message.expected, acknowledged = message.expected + message.answer;
  if (!own.candidates.empty()) {
    const uint32_t phase = own.candidates.front();
    const uint32_t place = memory_.place(phase, described(own, message));
    // It has been learned anew meanwhile.
    if (place == PhaseMemory::kNone) return;
    const PhaseMessage& known = memory_.messages(phase)[place];
    arrives = message.begins + known.arrives - known.begins;
    acknowledged = message.begins + known.acknowledged - known.begins;
  }
  if (message.arrives == arrives && message.acknowledged == acknowledged) return;
  const NetworkFlow& flow = config_.flows[message.flow];
  ++message.version;
  if (!message.has_arrived) {
    message.arrives = arrives;
    schedule(flow.to, now, {arrives, 0, What::arrives, number, message.version, message.generation});
  }
  if (!message.is_acknowledged) {
    message.acknowledged = std::max(acknowledged, message.arrives);
    schedule(flow.from, now, {message.acknowledged, 0, What::acknowledged, number, message.version, message.generation});
  }
}

// Nothing that is known fits: what is left is sent.
void LearnedPhases::leave(uint32_t place, Time now) {
  Component& own = components_[place];
  own.real = true;
  own.alone = false;
  own.candidates.clear();
  bool late = false;
  Time free = 0;  // of a line: when the last byte of the message before leaves
  for (const uint32_t number : own.members) {
    Message& message = messages_[number];
    const Time after = ways_.hops(message.flow).back().after;
    const Time from = std::max(message.begins, free), leaves = message.arrives == kNever ? kNever : message.arrives - after;
    if (own.line) free = message.real && !message.has_arrived ? message.expected - after : leaves;
    // What has left its sender comes as it was foretold.
    if (message.real || message.has_arrived || leaves <= now) continue;
    message.real = true;
    message.sent = message.bytes;
    if (message.begins < now && leaves != kNever) {
      const double left =
          std::min(1.0, static_cast<double>(leaves - now) / static_cast<double>(std::max<Time>(1, leaves - from)));
      message.sent =
          std::max<uint64_t>(message.bytes > 0 ? 1 : 0, static_cast<uint64_t>(left * static_cast<double>(message.bytes)));
      report_.left_bytes += static_cast<double>(message.sent);
      report_.skipped_bytes += static_cast<double>(message.bytes - message.sent);
      late = true;
    }
    ++message.version;
    message.arrives = message.acknowledged = kNever;
    send_at(number, now);
  }
  if (std::ranges::any_of(own.members, [this](uint32_t member) { return !messages_[member].real; })) own.clean = false;
  if (!late) return;
  own.clean = false;
  report_.left += 1;
  const uint32_t first = messages_[own.members.front()].flow;
  if (flows_[first].surprises < kMostSurprises) ++flows_[first].surprises;
  flows_[first].again = true;
}

// ---- what comes ----

void LearnedPhases::schedule(uint32_t nic, Time now, Due due) {
  // Other machines may live up to a window ahead.
  due.at = std::max(due.at, now + window_);
  due.sequence = sequence_++;
  const uint32_t machine = machine_of_nic_[nic];
  std::vector<Due>& heap = due_[machine];
  heap.push_back(due);
  std::ranges::push_heap(heap, later);
  ask(machine, now);
}

void LearnedPhases::ask(uint32_t machine, Time now) {
  const std::vector<Due>& heap = due_[machine];
  if (heap.empty() || heap.front().at >= wakes_[machine]) return;
  wakes_[machine] = std::max(heap.front().at, now);
  network_.wake_host(machine, wakes_[machine]);
}

void LearnedPhases::wake(uint32_t machine, Time now) {
  here_ = machine;
  std::vector<Due>& heap = due_[machine];
  if (wakes_[machine] <= now) wakes_[machine] = kNever;
  while (!heap.empty() && heap.front().at <= now) {
    const Due due = heap.front();
    std::ranges::pop_heap(heap, later);
    heap.pop_back();
    if (due.what == What::check) {
      const Component& own = components_[due.index];
      if (own.version == due.version && !own.members.empty() && !own.real) go_on(due.index, now);
      continue;
    }
    const Message& message = messages_[due.index];
    if (message.generation != due.generation || message.version != due.version) continue;
    if (due.what == What::send) {
      --flows_[message.flow].delayed;
      send(due.index, now);
    } else {
      end(due.index, due.at, due.what == What::arrives);
    }
  }
  ask(machine, now);
}

bool LearnedPhases::heard(Time now, uint32_t flow, bool arrived, uint32_t word) {
  const auto found = sent_.find(key(flow, word));
  if (found == sent_.end()) return false;
  const uint32_t number = found->second;
  Message& message = messages_[number];
  if (arrived) {
    message.has_arrived = true;
    message.arrives = now;
    count(message);
    return true;
  }
  message.acknowledged = now;
  sent_.erase(found);
  message.is_acknowledged = true;
  network_.finish(flow, message.bytes, message.begins, now);
  learn_of_line(components_[message.component], number);
  if (--components_[message.component].live == 0) close(message.component);
  return true;
}

// A message that was not sent has come, or its sender hears of that.
void LearnedPhases::end(uint32_t number, Time now, bool arrived) {
  Message& message = messages_[number];
  const NetworkFlow& flow = config_.flows[message.flow];
  const uint32_t word = message.word;
  if (arrived) {
    message.has_arrived = true;
    count(message);
    report_.skipped += 1;
    report_.skipped_bytes += static_cast<double>(message.bytes);
    return network_.tell(flow.to, true, word, now);
  }
  message.is_acknowledged = true;
  network_.finish(message.flow, message.bytes, message.begins, now);
  const uint32_t component = message.component;
  if (--components_[component].live == 0) close(component);
  network_.tell(flow.from, false, word, now);
}

}  // namespace weir
