#include "simulation/fast_forward.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include "simulation/under_way.h"

namespace weir {
namespace {

// Shortest window, and its length in delays of the longest link, where no controller has longer intervals.
constexpr Time kShortestWindow = 20 * kMicrosecond;
constexpr Time kDelays = 8;
// Part of the bound within which stretches have to agree before anything is skipped. What agrees just so is judged by chance.
constexpr double kSteady = 0.7;
// Parts of what was watched that are compared.
constexpr uint64_t kParts = 4;
// What was observed is repeated so many times at first, and so many times as long a stretch each time that the judge agrees.
constexpr uint64_t kFirstTimes = 4;
constexpr uint64_t kGrowth = 4;
// Stretches that are judged, at least, and the time that is simulated to judge what is skipped, as a part of that, where no other
// is asked for.
constexpr size_t kStretches = 3;
constexpr double kShare = 0.002;

// The longest time among fields in ns.
struct LongestTime : Visitor {
  Time longest = 0;
  template <class T>
  void operator()(const char* /*name*/, const T& value, const About& about) {
    if constexpr (Number<T>) {
      if (std::string_view(about.unit) == "ns") longest = std::max(longest, static_cast<Time>(value));
    }
  }
};

// Windows are as long as the longest interval of a controller, and some round trips.
Time window_of(const SimulationConfig& config) {
  LongestTime times;
  times.longest = kShortestWindow;
  for (const SimulatedLink& link : config.links) times.longest = std::max(times.longest, kDelays * link.delay);
  for (const SimulatedNic& nic : config.nics) {
    visit_described(nic.parameters.congestion, [&](const char*, const auto& parameters) { describe(times, parameters); });
  }
  return times.longest;
}

bool ends(const NetworkFlow& flow) { return flow.on_demand || flow.sizes_count > 0 || flow.stream.total_bytes > 0; }

// Why nothing of it may be skipped; empty: it may.
std::string refusal_of(const SimulationConfig& config, Time end) {
  if (!config.taps.empty()) return "frames are traced";
  if (!config.faults.empty()) return "faults of frames happen at their times";
  const auto storms = [](const SimulatedNic& nic) { return nic.parameters.pause_storm.priorities != 0; };
  if (std::ranges::any_of(config.nics, storms)) return "a host pauses its link at times of its own";
  if (has_programs(config)) return "programs do things at times of their own";
  const auto happens = [=](const NetworkFlow& flow) { return flow.start < end; };
  if (std::ranges::none_of(config.flows, happens)) return "there are no flows";
  const auto finite = [=](const NetworkFlow& flow) { return happens(flow) && ends(flow); };
  if (std::ranges::any_of(config.flows, finite)) return "flows have an end: only such as send all the time are forwarded";
  return "";
}

// When the last flow has begun, or stopped, of those that do so before the end.
Time all_begun(const SimulationConfig& config, Time end) {
  Time last = 0;
  for (const NetworkFlow& flow : config.flows) {
    for (const Time at : {flow.start, flow.stop}) {
      if (at < end) last = std::max(last, at);
    }
  }
  return last;
}

// A trend is more than chance where it is so many times its standard error (least squares, n - 2 degrees of freedom).
constexpr double kTrend = 5;

// How long it takes until a trend of values, measured at times, comes to `bound` of their mean; kNever: it is not more than
// chance.
Time until_drifted(const std::vector<double>& times, const std::vector<double>& values, double bound, double least) {
  const auto n = static_cast<double>(values.size());
  const double time = std::accumulate(times.begin(), times.end(), 0.0) / n;
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double xx = 0, xy = 0, yy = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    xx += (times[i] - time) * (times[i] - time);
    xy += (times[i] - time) * (values[i] - mean);
    yy += (values[i] - mean) * (values[i] - mean);
  }
  const double slope = xy / xx, error = std::sqrt(std::max(0.0, yy - slope * xy) / (n - 2) / xx);
  if (std::abs(slope) <= kTrend * error) return kNever;
  return static_cast<Time>(std::min(bound * std::max(mean, least) / std::abs(slope), 1e18));
}

// How long it takes until rates that have done nothing but rise come to `bound` more: nothing holds their flows back yet, however
// steady what comes of them looks, as where each step is smaller than what is lost in counting whole packets. kNever: they did
// not.
Time until_risen(const std::vector<Measures>& parts, double bound) {
  const auto falls = [](const Measures& one, const Measures& next) { return next.rates < one.rates; };
  if (std::ranges::adjacent_find(parts, falls) != parts.end()) return kNever;
  const Measures &first = parts.front(), &last = parts.back();
  const double risen = last.rates - first.rates;
  if (risen <= 0) return kNever;
  return static_cast<Time>(std::min(bound * first.rates * static_cast<double>(last.at - first.at) / risen, 1e18));
}

uint64_t key_of(size_t device, uint16_t port, int priority) {
  return uint64_t{device} << 32 | uint64_t{port} << 3 | static_cast<uint64_t>(priority);
}

template <class Counters>
Counters& row_of(CounterTable& table, size_t row) {
  return *reinterpret_cast<Counters*>(&table.words[row * Counters::kCount]);
}

// Makes what a flow has sent agree with what has come of it, as if no more were under way at the end than at the beginning:
// repeated a thousand times the difference would be packets that are nowhere. False: it has not sent as much.
bool balance_flows(CounterTables& growth, const std::vector<uint32_t>& before, const std::vector<uint32_t>& now) {
  for (size_t flow = 0; flow < now.size(); ++flow) {
    auto& sender = row_of<QpCounters>(growth.senders, flow);
    const auto sent = static_cast<int64_t>(sender.tx_packets), more = int64_t{now[flow]} - int64_t{before[flow]};
    if (more > sent) return false;
    if (sent == 0) continue;
    const auto balanced = static_cast<uint64_t>(sent - more);
    sender.tx_bytes = portion(sender.tx_bytes, balanced, sender.tx_packets);
    sender.tx_wire_bytes = portion(sender.tx_wire_bytes, balanced, sender.tx_packets);
    sender.tx_packets = balanced;
  }
  return true;
}

// The same for all frames: what NICs have sent grows by what has arrived and was dropped. The account is that of
// src/result/device_results.ts.
bool balance_frames(CounterTables& growth) {
  using M = CounterMeaning;
  const auto sum = [](const CounterTable& table, auto... meanings) { return static_cast<int64_t>((table.sum(meanings) + ...)); };
  const CounterTable &nics = growth.nics, &ports = growth.switch_ports, &queues = growth.switch_priorities;
  const int64_t sent = sum(nics, M::sent, M::refused, M::down, M::control_tx, M::duplicate) +
                       sum(ports, M::made, M::cnm, M::control_tx, M::duplicate) + sum(queues, M::made, M::cnm, M::duplicate) +
                       sum(growth.links, M::duplicate);
  const int64_t gone = sum(nics, M::received, M::control_rx, M::fault) + sum(ports, M::taken, M::control_rx, M::drop, M::fault) +
                       sum(queues, M::drop, M::fault) + sum(growth.links, M::fault, M::down);
  int64_t more = sent - gone;
  const size_t count = nics.rows();
  for (size_t i = 0; i < count && more != 0; ++i) {
    auto& nic = row_of<NicCounters>(growth.nics, i);
    const auto of_nic = static_cast<int64_t>(nic.tx_packets);
    // Its share of what is left, rounded away from 0.
    const auto left = static_cast<int64_t>(count - i);
    const int64_t part = more > 0 ? std::min((more + left - 1) / left, of_nic) : of_nic > 0 ? (more - left + 1) / left : 0;
    if (part == 0) continue;
    nic.tx_bytes = portion(nic.tx_bytes, static_cast<uint64_t>(of_nic - part), nic.tx_packets);
    nic.tx_packets = static_cast<uint64_t>(of_nic - part);
    more -= part;
  }
  return more == 0;
}

}  // namespace

FastForward::FastForward(const SimulationConfig& config, Fabric& fabric, const FlowLayout& layout)
    : config_(config),
      parameters_(*config.fast_forward),
      fabric_(fabric),
      layout_(layout),
      refusal_(refusal_of(config, end())),
      window_(window_of(config)),
      skipped_counts_(count(fabric, layout, config.flows.size())) {
  if (refusal_.empty()) next_look_ = all_begun(config, end()) + window_;
}

Time FastForward::outside(Time inside) const {
  const auto next = std::ranges::lower_bound(jumps_, inside, {}, &Jump::inside);
  return next == jumps_.begin() ? inside : inside + std::prev(next)->skipped;
}

void FastForward::skip(Time until) {
  position_ = std::min(position_ + (until - now()), length_);
  if (position_ < length_) return;
  skipped_counts_.add(growth_, 1, 1);
  skipped_ += std::exchange(length_, 0);
  position_ = 0;
  jumps_.push_back({fabric_.now(), skipped_});
}

void FastForward::add_to(CounterTables& tables) const {
  tables.add(skipped_counts_, 1, 1);
  if (skipping()) tables.add(growth_, static_cast<uint64_t>(position_), static_cast<uint64_t>(length_));
}

double FastForward::share() const { return parameters_.share > 0 ? parameters_.share : kShare; }

FastForwardReport FastForward::report() const {
  FastForwardReport out{.window = window_, .share = share(), .reason = refusal_, .stretches = stretches_};
  if (refusal_.empty() && stretches_.empty()) out.reason = "the network was not in a steady state for long enough";
  return out;
}

void FastForward::look() {
  next_look_ = fabric_.now() + window_;
  ++windows_;
  const bool judged = phase_ != Phase::judging || fabric_.now() - resumed_.at < block_ || judge();
  const bool over = phase_ == Phase::judging && fabric_.now() - resumed_.at >= block_;
  bool changes = false;
  for (; due_ < parameters_.due.size() && parameters_.due[due_] <= now(); ++due_) changes = true;
  if (due_ == parameters_.due.size()) {
    next_look_ = kNever;
    return;
  }
  // What is due at this very time has not happened yet.
  if (changes) {
    phase_ = Phase::idle;
  } else if (phase_ == Phase::idle || !judged) {
    phase_ = Phase::settling;
    windows_ = 0;
    half_ = kParts;
  } else if (phase_ == Phase::settling) {
    settle();
  } else if (over || phase_ == Phase::waiting) {
    jump();
  }
}

template <class Visit>
void FastForward::each_distribution(Visit visit) {
  for (size_t i = 0; i < fabric_.switch_count(); ++i) {
    SoftSwitch& device = fabric_.switch_at(i);
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      for (int p = 0; p < kPriorities; ++p) {
        if (device.statistics().keeps_distribution(port, p)) visit(device.statistics(), port, p, key_of(i, port, p));
      }
    }
  }
}

// The differences from what they were stay what they are.
void FastForward::distributions_restart() {
  const double queues = measured().queues;
  for (Measures& part : parts_) part.queues -= queues;
  for (Measures* const one : {&base_.measures, &ended_, &resumed_}) one->queues -= queues;
  each_distribution([&](QueueStatistics& statistics, uint16_t port, int priority, uint64_t key) {
    base_.distributions[key].subtract(statistics.distribution(port, priority));
  });
}

// Watches for longer and longer. The first half of what was watched is not looked at, and the parts of the other one have to be
// alike.
void FastForward::settle() {
  if (windows_ == half_) {
    base_ = snapshot();
    parts_ = {base_.measures};
  }
  if (windows_ <= half_ || windows_ % (half_ / kParts) != 0) return;
  parts_.push_back(measured());
  if (parts_.size() <= kParts) return;
  const Stretch whole(parts_.front(), parts_.back());
  bool steady = true;
  for (size_t i = 0; i < kParts; ++i) {
    steady &= within(Stretch(parts_[i], parts_[i + 1]).from(whole), kSteady * parameters_.bound);
  }
  if (steady) {
    block_ = whole.length() / kParts;
    times_ = kFirstTimes;
    return jump();
  }
  half_ = windows_;
  base_ = snapshot();
  parts_ = {base_.measures};
}

bool FastForward::judge() {
  const Measures now = measured();
  SkippedStretch& stretch = stretches_.back();
  stretch.differences = Stretch(resumed_, now).from(Stretch(base_.measures, ended_));
  stretch.judged = now.at - resumed_.at;
  times_ *= kGrowth;
  stretch.agrees = within(stretch.differences, parameters_.bound);
  return stretch.agrees;
}

// Time inside stands while time outside is skipped: a slow trend does not show behind a stretch, but before it. What is missed of
// it is missed for good, so all stretches together may miss as much as comes to the bound.
Time FastForward::drift() const {
  std::vector<double> times, goodputs, queues;
  for (size_t i = 1; i < parts_.size(); ++i) {
    const Measures &from = parts_[i - 1], &to = parts_[i];
    const auto length = static_cast<double>(to.at - from.at);
    const auto bytes = [](const Measures& one) { return std::accumulate(one.bytes.begin(), one.bytes.end(), uint64_t{0}); };
    times.push_back(static_cast<double>(from.at) + length / 2);
    goodputs.push_back(static_cast<double>(bytes(to) - bytes(from)) / length);
    queues.push_back((to.queues - from.queues) / length);
  }
  return std::min({until_drifted(times, goodputs, parameters_.bound, 0),
                   until_drifted(times, queues, parameters_.bound, kShortQueue), until_risen(parts_, parameters_.bound)});
}

void FastForward::jump() {
  if (parts_.back().at < fabric_.now()) parts_.push_back(measured());
  const Time period = fabric_.now() - base_.measures.at;
  Time judged = block_;
  for (const SkippedStretch& stretch : stretches_) judged += stretch.judged;
  // Distributions start afresh behind a stretch, not within it; at this very time they have not yet.
  const Time next = now() <= config_.reset_after ? std::min(parameters_.due[due_], config_.reset_after) : parameters_.due[due_];
  const auto covered = static_cast<Time>(std::llround(static_cast<double>(judged) / share()));
  const Time drifts = drift();
  const auto unmissed = drifts == kNever ? kNever : static_cast<Time>((1 - missed_) * static_cast<double>(drifts));
  Time longest = std::min({next - now() - block_, covered - skipped_, static_cast<Time>(times_) * period, unmissed});
  if (stretches_.size() < kStretches)
    longest = std::min(longest, (end() - now()) / static_cast<Time>(kStretches - stretches_.size()));
  // Less is not worth it: what is left until something is due is simulated.
  if (longest < block_ || !begin(longest)) {
    phase_ = Phase::waiting;
    return;
  }
  missed_ += static_cast<double>(longest) / static_cast<double>(drifts);
}

// Begins to skip `length`. False: what was observed cannot be repeated.
bool FastForward::begin(Time length) {
  settle_counters(fabric_);
  CounterTables observed = count(fabric_, layout_, config_.flows.size()).since(base_.counters);
  const auto period = static_cast<uint64_t>(fabric_.now() - base_.measures.at);
  const auto whole = static_cast<uint64_t>(length);
  if (!balance_flows(observed, base_.under_way, packets_under_way(fabric_, config_, layout_))) return false;
  growth_ = observed.times(whole, period);
  if (!balance_frames(growth_)) return false;
  length_ = length;
  ended_ = measured();
  each_distribution([&](QueueStatistics& statistics, uint16_t port, int priority, uint64_t key) {
    statistics.repeat_distribution(port, priority, base_.distributions[key], whole, period);
  });
  resumed_ = measured();
  base_.measures.queues += resumed_.queues - ended_.queues;
  for (Measures& part : parts_) part.queues += resumed_.queues - ended_.queues;
  ended_.queues = resumed_.queues;
  stretches_.push_back({.from = now(), .to = now() + length_, .observed = static_cast<Time>(period), .differences = {}});
  phase_ = Phase::judging;
  return true;
}

Measures FastForward::measured() {
  settle_counters(fabric_);
  return measure(fabric_, layout_, config_.flows.size());
}

FastForward::Snapshot FastForward::snapshot() {
  Snapshot out{.measures = measured(),
               .counters = count(fabric_, layout_, config_.flows.size()),
               .distributions = {},
               .under_way = packets_under_way(fabric_, config_, layout_)};
  each_distribution([&](QueueStatistics& statistics, uint16_t port, int priority, uint64_t key) {
    out.distributions.emplace(key, statistics.distribution(port, priority));
  });
  return out;
}

}  // namespace weir
