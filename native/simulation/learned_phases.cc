#include "simulation/learned_phases.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "simulation/division.h"
#include "simulation/flow_ways.h"

namespace weir {
namespace {

// Part of a phase's length by which begins may differ from what is remembered.
const double kTolerance = getenv("TOL") ? atof(getenv("TOL")) : 0.02;
// What is left of a message when it is no more in the way of others, as a part of it.
constexpr double kTail = 0.01;
// Headers and gap of a frame with payload.
constexpr double kHeaders = 82;
// Messages of a phase that is remembered, at most; a run that has a longer one is simulated from there on.
constexpr size_t kMostMembers = 20'000;
// Stretches of a run that are simulated to be compared, and the part of all messages that each is.
constexpr uint64_t kStretches = 3;
constexpr uint64_t kPart = 1'500;
constexpr uint64_t kLeastStretch = 8;
// How often a flow's phases may go on unlike what is remembered before those that it begins are only recalled as phases of several.
constexpr uint8_t kMostSurprises = 3;
// Whether it is worth it is looked at after so many messages, and again after as many.
constexpr uint64_t kLook = 4'096;
constexpr double kWorthwhile = 0.1;

std::string refusal_of(const SimulationConfig& config) {
  if (!config.taps.empty()) return "frames are traced";
  if (!config.faults.empty()) return "faults of frames happen at their times";
  const auto other = [](const NetworkFlow& flow) { return !flow.on_demand; };
  if (std::ranges::any_of(config.flows, other)) return "there is traffic beside message graphs";
  const auto impaired = [](const SimulatedLink& link) { return link.impairment.has_value(); };
  if (std::ranges::any_of(config.links, impaired)) return "links are impaired by chance";
  const auto storms = [](const SimulatedNic& nic) { return nic.parameters.pause_storm.priorities != 0; };
  if (std::ranges::any_of(config.nics, storms)) return "a host pauses its link at times of its own";
  const auto learns = [](const SimulatedSwitch& device) { return device.parameters.learning; };
  if (std::ranges::any_of(config.switches, learns)) return "switches learn where hosts are";
  if (config.fast_forward->due.size() > 1) return "something happens to the network during the run";
  return "";
}

RoutedNetwork routed(const SimulationConfig& config) {
  RoutedNetwork network;
  const bool sprays = config.transport.spraying != Spraying::none;
  for (const SimulatedSwitch& device : config.switches) {
    RoutedSwitch& own = network.switches.emplace_back();
    own.routes() = device.routes();
    own.hash_seed = device.parameters.hash_seed;
    own.component = static_cast<uint32_t>(device.parameters.component);
    const LoadBalancing how = device.parameters.load_balancing;
    own.spreads = sprays || how == LoadBalancing::spray || how == LoadBalancing::adaptive;
  }
  for (const SimulatedNic& nic : config.nics) {
    const uint8_t* const ip = nic.ip;
    network.addresses.push_back(uint32_t{ip[0]} << 24 | uint32_t{ip[1]} << 16 | uint32_t{ip[2]} << 8 | ip[3]);
  }
  for (const SimulatedLink& link : config.links) {
    const auto& [from, to] = link.ends;
    network.links.push_back({from.device, from.port, to.device, to.port, link.delay, 0});
  }
  for (const NetworkFlow& flow : config.flows) network.flows.push_back({flow.from, flow.to, flow.udp_source_port});
  return network;
}

Rate rate_of(const SimulationConfig& config, const LinkEnd& end) {
  const size_t switches = config.switches.size();
  if (end.device < switches) return config.switches[end.device].parameters.ports[end.port].rate;
  return config.nics[end.device - switches].parameters.rate;
}

}  // namespace

LearnedPhases::LearnedPhases(const SimulationConfig& config, Network& network, uint64_t messages,
                             std::vector<uint32_t> machine_of_nic)
    : config_(config),
      network_(network),
      machine_of_nic_(std::move(machine_of_nic)),
      expected_(messages),
      window_(longest_window(config)),
      memory_(kTolerance, window_),
      uses_(2 * config.links.size()),
      due_(config.nics.size()),
      wakes_(config.nics.size(), kNever),
      surprises_(config.flows.size()),
      again_(config.flows.size()) {
  report_.reason = refusal_of(config);
  off_ = !report_.reason.empty();
  if (!off_) find_ways();
}

void LearnedPhases::find_ways() {
  const RoutedNetwork network = routed(config_);
  FlowWays finder(network);
  std::map<std::vector<int64_t>, uint32_t> kinds;
  for (size_t i = 0; i < config_.flows.size(); ++i) {
    const NetworkFlow& flow = config_.flows[i];
    const FlowWay found = finder.of(network.flows[i]);
    Way& own = ways_.emplace_back();
    own.first = static_cast<uint32_t>(hops_.size());
    own.count = static_cast<uint32_t>(found.hops.size());
    const double frame = flow.stream.path_mtu + kHeaders;
    std::vector<int64_t> kind{flow.stream.path_mtu, flow.priority, flow.rate_cap};
    Rate slowest = flow.rate_cap;
    Time after = 0;
    for (size_t hop = found.hops.size(); hop-- > 0;) {
      const uint32_t direction = found.hops[hop].link;
      const SimulatedLink& link = config_.links[direction / 2];
      const Rate rate = rate_of(config_, link.ends[direction % 2]);
      after += link.delay;
      hops_.push_back({direction, after});
      if (rate > 0) after += static_cast<Time>(frame * 8e9 / static_cast<double>(rate));
      if (rate > 0 && (slowest == 0 || rate < slowest)) slowest = rate;
      kind.insert(kind.end(), {rate, link.delay, static_cast<int64_t>(found.hops[hop].share * 1e6)});
    }
    own.ns_per_byte = slowest == 0 ? 0 : 8e9 / static_cast<double>(slowest) * frame / flow.stream.path_mtu;
    own.latency = hops_.back().after;
    own.kind = kinds.emplace(std::move(kind), static_cast<uint32_t>(kinds.size())).first->second;
  }
}

// ---- messages begin ----

void LearnedPhases::begin(Time now, uint32_t flow, uint32_t word, uint64_t bytes) {
  ++begun_;
  report_.messages += 1;
  report_.bytes += static_cast<double>(bytes);
  here_ = machine_of_nic_[config_.flows[flow].from];
  if (off_) return network_.send(now, flow, word, bytes);
  look();
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
  own = {.flow = flow, .word = word, .number = 0, .component = 0, .generation = own.generation + 1, .version = 0, .bytes = bytes,
         .sent = 0, .position = 0, .begins = now, .real = false, .first = !std::exchange(ways_[flow].used, true), .arrives = kNever,
         .acknowledged = kNever, .expected = kNever, .answer = 0, .has_arrived = false, .is_acknowledged = false};
  const bool fresh = touched_.empty();
  const uint32_t place = join(number);
  Component& component = components_[place];
  const Way& way = ways_[flow];
  for (uint32_t hop = way.first; hop < way.first + way.count; ++hop) {
    uses_[hops_[hop].direction].push_back({number, own.generation, hops_[hop].after});
  }
  if (fresh) {
    component.real = component.judged = simulates(flow);
    expect(component, number);
    if (!component.real) {
      component.alone = surprises_[flow] < kMostSurprises && own.expected != kNever;
      find_candidates(component);
    }
  } else if (component.line) {
    expect(component, number);
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
    send_at(number, now);
    if (component.members.size() > kMostMembers) {
      off_ = true;
      report_.reason = "messages meet others without an end: phases are too long to be remembered";
    }
    return;
  }
  go_on(place, now);
}

// Whether a phase that begins now is simulated whatever is known.
bool LearnedPhases::simulates(uint32_t flow) {
  const auto next = static_cast<uint64_t>(report_.stretches) + 1;
  if (left_of_stretch_ == 0 && next <= kStretches && begun_ >= next * expected_ / (kStretches + 1)) {
    left_of_stretch_ = std::max(expected_ / kPart, kLeastStretch);
    report_.stretches += 1;
  }
  if (left_of_stretch_ > 0) {
    --left_of_stretch_;
    return true;
  }
  if (!again_[flow]) return false;
  again_[flow] = false;
  return true;
}

void LearnedPhases::look() {
  if (begun_ % kLook != 0) return;
  if (report_.skipped_bytes >= kWorthwhile * report_.bytes || begun_ < expected_ / 10) return;
  off_ = true;
  report_.reason = "phases did not repeat themselves: too little came from memory";
}

void LearnedPhases::send(uint32_t number, Time now) {
  const Message& message = messages_[number];
  ways_[message.flow].sent += message.sent;
  messages_[number].position = ways_[message.flow].sent;
  sent_.emplace(key(message.flow, message.word), number);
  network_.send(now, message.flow, message.word, message.sent);
}

// At once where that is the machine at hand, and none of its flow waits to be sent.
void LearnedPhases::send_at(uint32_t number, Time now) {
  const Message& message = messages_[number];
  const uint32_t nic = config_.flows[message.flow].from;
  Way& way = ways_[message.flow];
  if (machine_of_nic_[nic] == here_ && way.delayed == 0) return send(number, now);
  ++way.delayed;
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
  const Way& way = ways_[message.flow];
  const double way_bytes = way.ns_per_byte > 0 ? static_cast<double>(after) / way.ns_per_byte : 0;
  return left > kTail * static_cast<double>(message.sent) + way_bytes;
}

// Fills touched_ with the components that a message meets.
void LearnedPhases::touched(Time now, uint32_t flow) {
  touched_.clear();
  const Way& way = ways_[flow];
  for (uint32_t hop = way.first; hop < way.first + way.count; ++hop) {
    std::vector<Use>& uses = uses_[hops_[hop].direction];
    std::erase_if(uses, [&](const Use& use) {
      const Message& message = messages_[use.message];
      if (message.generation != use.generation) return true;
      if (!meets(message, use.after, now)) return message.has_arrived;
      if (std::ranges::find(touched_, message.component) == touched_.end()) touched_.push_back(message.component);
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
  if (merges) {
    recount(own);
    if (!own.real) find_candidates(own);
  } else {
    message.number = number_of(own, message.flow);
    if (!own.real) {
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
  return memory_.place(phase, message.flow, message.number, message.bytes, message.begins - own.begins) != PhaseMemory::kNone;
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
  schedule(config_.flows[messages_[own.members.front()].flow].from, now,
           {at, 0, What::check, place, own.version, 0});
}

void LearnedPhases::foretell(Component& own, uint32_t number, Time now) {
  Message& message = messages_[number];
  if (message.real) return;
  Time arrives = message.expected, acknowledged = message.expected + message.answer;
  if (!own.candidates.empty()) {
    const uint32_t phase = own.candidates.front();
    const uint32_t place = memory_.place(phase, message.flow, message.number, message.bytes, message.begins - own.begins);
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
  for (const uint32_t number : own.members) {
    Message& message = messages_[number];
    if (message.real || message.has_arrived) continue;
    message.real = true;
    message.sent = message.bytes;
    const bool before = message.begins < now && message.arrives != kNever;
    if (before) {
      const double left = std::max(0.0, static_cast<double>(message.arrives - now)) /
                          static_cast<double>(std::max<Time>(1, message.arrives - message.begins));
      message.sent = std::max<uint64_t>(message.bytes > 0 ? 1 : 0, static_cast<uint64_t>(left * static_cast<double>(message.bytes)));
      report_.left_bytes += static_cast<double>(message.sent);
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
  if (surprises_[first] < kMostSurprises) ++surprises_[first];
  again_[first] = true;
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
      --ways_[message.flow].delayed;
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
    return network_.tell(flow.to, true, word, now);
  }
  message.is_acknowledged = true;
  network_.finish(message.flow, message.bytes, message.begins, now);
  const uint32_t component = message.component;
  if (--components_[component].live == 0) close(component);
  network_.tell(flow.from, false, word, now);
}

void LearnedPhases::close(uint32_t place) {
  Component& own = components_[place];
  report_.phases += 1;
  bool recalled = true;
  for (const uint32_t number : own.members) {
    const Message& message = messages_[number];
    recalled &= !message.real;
    if (!message.real) report_.skipped += 1;
    report_.skipped_bytes += static_cast<double>(message.bytes - message.sent);
  }
  if (recalled) report_.recalled += 1;
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
  compare(own);
  if (std::ranges::any_of(own.members, [this](uint32_t member) { return !messages_[member].real; })) return;
  recount(own);
  std::vector<PhaseMessage> messages;
  for (const uint32_t number : own.members) {
    const Message& message = messages_[number];
    messages.push_back({message.flow, message.number, message.bytes, message.begins - own.begins, message.arrives - own.begins,
                        message.acknowledged - own.begins});
  }
  memory_.learn(std::move(messages));
}

// What memory would have said of a phase that was simulated.
void LearnedPhases::compare(const Component& own) {
  Component copy = own;
  recount(copy);
  find_candidates(copy);
  std::erase_if(copy.candidates, [&](uint32_t phase) { return memory_.messages(phase).size() != own.members.size(); });
  if (copy.candidates.empty()) return;
  const uint32_t phase = copy.candidates.front();
  Time length = 0, foretold = 0;
  for (const uint32_t number : own.members) {
    const Message& message = messages_[number];
    const uint32_t at = memory_.place(phase, message.flow, message.number, message.bytes, message.begins - own.begins);
    const PhaseMessage& known = memory_.messages(phase)[at];
    length = std::max(length, message.arrives - own.begins);
    foretold = std::max(foretold, message.begins - own.begins + known.arrives - known.begins);
  }
  judge(length, foretold, own.members.size());
}

void LearnedPhases::judge(Time length, Time foretold, size_t messages) {
  report_.judged += 1;
  report_.judged_messages += static_cast<double>(messages);
  const auto difference = static_cast<double>(foretold - length);
  lengths_ += static_cast<double>(length);
  differences_ += std::abs(difference);
  signed_ += difference;
  report_.worst = std::max(report_.worst, std::abs(difference) / static_cast<double>(std::max<Time>(1, length)));
}

// ---- lines ----

// When a message that has just joined a line should come: as others did behind another, or alone.
void LearnedPhases::expect(const Component& own, uint32_t number) {
  Message& message = messages_[number];
  const uint32_t kind = ways_[message.flow].kind;
  PhaseMemory::Times alone, behind;
  const bool known = memory_.recall({kind, message.first, false, message.bytes}, alone);
  if (known) {
    message.expected = message.begins + alone.arrives;
    message.answer = alone.acknowledged;
  }
  if (own.members.size() < 2) return;
  const Message& before = messages_[own.members[own.members.size() - 2]];
  const Time comes = before.has_arrived ? before.arrives : before.expected;
  if (comes <= message.begins) return;
  if (comes == kNever || !memory_.recall({kind, false, true, message.bytes}, behind)) {
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
  if (getenv("DBG") && message.expected != kNever && std::abs(double(message.expected - message.arrives)) > 0.05 * double(message.arrives - message.begins)) {
    fprintf(stderr, "bad flow %u bytes %lu begins %ld arrives %ld expected %ld members %zu first %d\n", message.flow, message.bytes, message.begins, message.arrives, message.expected, own.members.size(), message.first);
    for (uint32_t m : own.members) fprintf(stderr, "   %ld..%ld exp %ld real %d\n", messages_[m].begins, messages_[m].arrives, messages_[m].expected, messages_[m].real);
  }
  if (message.expected != kNever) judge(message.arrives - message.begins, message.expected - message.begins, 1);
  const uint32_t kind = ways_[message.flow].kind;
  const Time answer = message.acknowledged - message.arrives;
  const auto place = std::ranges::find(own.members, number);
  const Message* const before = place == own.members.begin() ? nullptr : &messages_[*std::prev(place)];
  if (before == nullptr || before->arrives <= message.begins) {
    memory_.learn({kind, message.first, false, message.bytes}, {message.arrives - message.begins, answer});
  } else if (before->real) {
    memory_.learn({kind, false, true, message.bytes}, {message.arrives - before->arrives, answer});
  }
}

LearnedReport LearnedPhases::report() const {
  LearnedReport out = report_;
  out.known = static_cast<double>(memory_.phases() + memory_.alone());
  if (lengths_ > 0) {
    out.error = differences_ / lengths_;
    out.bias = signed_ / lengths_;
  }
  return out;
}

}  // namespace weir
