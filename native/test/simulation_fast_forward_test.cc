// Fast-forward: what comes of a run of which most was skipped, beside one that was simulated.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "test/simulation_harness.h"

namespace weir::test {
namespace {

constexpr Time kEnd = 100 * kMillisecond;

// Three flows without congestion control share a port; PFC holds them.
SimulationConfig steady_star() {
  SimulationConfig config = star(4, 10 * kGigabit);
  without_congestion_control(config);
  for (uint32_t i = 0; i < 3; ++i) {
    config.flows.push_back(flow(i, 3, static_cast<uint16_t>(i)));
    config.flows[i].stop = kEnd;
    config.sampled_flows.push_back(i);
  }
  config.all_distributions = true;
  config.sample_interval = 10 * kMillisecond;
  return config;
}

SimulationConfig forwarded(SimulationConfig config, std::vector<Time> due = {kEnd}, double bound = 0.03) {
  config.fast_forward = FastForwardParameters{.bound = bound, .due = std::move(due)};
  return config;
}

uint64_t received_bytes(Simulation& simulation) {
  const CounterTables counters = simulation.all_counters();
  uint64_t sum = 0;
  for (uint32_t flow = 0; flow < counters.receivers.rows(); ++flow) {
    sum += reinterpret_cast<const QpCounters*>(&counters.receivers.words[flow * counters.receivers.columns])->rx_bytes;
  }
  return sum;
}

double mean_queue(Simulation& simulation) {
  double sum = 0;
  for (const auto& [queue, lengths] : simulation.queue_lengths()) {
    sum += lengths.weighted_sum() / static_cast<double>(lengths.total());
  }
  return sum;
}

// All that can be told of a run.
std::vector<uint64_t> told(Simulation& simulation) {
  const CounterTables all = simulation.all_counters();
  std::vector<uint64_t> words{static_cast<uint64_t>(simulation.now()), simulation.fabric().hops()};
  for (const CounterTable* table : {&all.switch_ports, &all.switch_priorities, &all.nics, &all.nic_priorities, &all.transports,
                                    &all.senders, &all.receivers, &all.links}) {
    words.insert(words.end(), table->words.begin(), table->words.end());
  }
  for (const Record& record : simulation.records()) {
    words.push_back(static_cast<uint64_t>(record.time));
    for (const double value : record.values) words.push_back(static_cast<uint64_t>(value));
  }
  for (const auto& [queue, lengths] : simulation.queue_lengths()) {
    words.push_back(lengths.total());
    words.push_back(lengths.max());
  }
  for (const SkippedStretch& stretch : simulation.forward()->report().stretches) {
    words.push_back(static_cast<uint64_t>(stretch.from));
    words.push_back(static_cast<uint64_t>(stretch.to));
  }
  return words;
}

std::string reason_of(const SimulationConfig& config) {
  Simulation simulation(forwarded(config));
  finish(simulation, kEnd);
  CHECK(simulation.forward()->report().stretches.empty());
  CHECK(simulation.fabric().now() == kEnd);
  return simulation.forward()->report().reason;
}

TEST_CASE("fast-forward: a steady state is skipped, and what comes of the run is that of all of it") {
  Simulation exact(steady_star()), fast(forwarded(steady_star()));
  finish(exact, kEnd);
  finish(fast, kEnd);
  CHECK(fast.now() == kEnd);
  CHECK(fast.fabric().hops() < exact.fabric().hops() / 5);
  const FastForwardReport report = fast.forward()->report();
  REQUIRE(report.stretches.size() >= 3);
  CHECK(report.reason.empty());
  Time skipped = 0, judged = 0;
  for (const SkippedStretch& stretch : report.stretches) {
    CHECK(stretch.agrees);
    skipped += stretch.to - stretch.from;
    judged += stretch.judged;
  }
  CHECK(skipped + fast.fabric().now() == kEnd);
  CHECK(judged >= skipped / 500);
  const auto bytes = static_cast<double>(received_bytes(exact));
  CHECK(std::abs(static_cast<double>(received_bytes(fast)) - bytes) < 0.005 * bytes);
  CHECK(std::abs(mean_queue(fast) - mean_queue(exact)) < 0.03 * mean_queue(exact));
}

TEST_CASE("fast-forward: as large a part of what is skipped is simulated as is asked for") {
  std::vector<double> reached;
  for (const double share : {0.0, 0.01, 0.5}) {
    SimulationConfig config = forwarded(steady_star());
    config.fast_forward->share = share;
    Simulation simulation(config);
    finish(simulation, kEnd);
    const FastForwardReport report = simulation.forward()->report();
    REQUIRE(report.stretches.size() >= 3);
    CHECK(report.share == (share > 0 ? share : 0.002));
    Time skipped = 0, judged = 0;
    for (const SkippedStretch& stretch : report.stretches) {
      skipped += stretch.to - stretch.from;
      judged += stretch.judged;
    }
    reached.push_back(static_cast<double>(judged) / static_cast<double>(skipped));
    CHECK(reached.back() >= report.share);
  }
  CHECK(reached[1] < 0.25);
  CHECK(reached[2] < 1);
}

TEST_CASE("fast-forward: packets and frames are accounted for, however much was skipped") {
  SimulationConfig config = forwarded(steady_star());
  // That of the receiver: PFC frames, which come to the senders, are not lost.
  config.links[3].impairment = ImpairmentParameters{.loss = 0.01};
  Simulation simulation(config);
  finish(simulation, kEnd);
  REQUIRE(!simulation.forward()->report().stretches.empty());
  const CounterTables all = simulation.all_counters();
  const uint64_t sent = all.nics.sum(CounterMeaning::sent) + all.nics.sum(CounterMeaning::control_tx) +
                        all.switch_ports.sum(CounterMeaning::control_tx);
  const uint64_t gone = all.nics.sum(CounterMeaning::received) + all.nics.sum(CounterMeaning::control_rx) +
                        all.switch_ports.sum(CounterMeaning::control_rx) + all.switch_ports.sum(CounterMeaning::drop) +
                        all.links.sum(CounterMeaning::fault);
  CHECK(sent >= gone);
  CHECK(sent - gone <= simulation.fabric().packets());
  uint64_t lost = 0;
  for (uint32_t flow = 0; flow < 3; ++flow) {
    const auto& from = *reinterpret_cast<const QpCounters*>(&all.senders.words[flow * QpCounters::kCount]);
    const auto& to = *reinterpret_cast<const QpCounters*>(&all.receivers.words[flow * QpCounters::kCount]);
    const uint64_t under_way = simulation.under_way()[flow];
    REQUIRE(from.tx_packets >= to.rx_packets + under_way);
    lost += from.tx_packets - to.rx_packets - under_way;
  }
  const double all_received = static_cast<double>(received_bytes(simulation)) / 1'024;
  CHECK(static_cast<double>(lost) / (static_cast<double>(lost) + all_received) == doctest::Approx(0.01).epsilon(0.1));
}

TEST_CASE("fast-forward: the same for any number of threads, and however a run is cut") {
  std::vector<uint64_t> first;
  for (const uint32_t threads : {1u, 2u, 3u}) {
    SimulationConfig config = forwarded(steady_star());
    config.threads = threads;
    Simulation whole(config);
    finish(whole, kEnd);
    if (first.empty()) first = told(whole);
    CHECK(told(whole) == first);
  }
  Simulation cut(forwarded(steady_star()));
  for (Time at = 0; at < kEnd; at += 777 * kMicrosecond) {
    finish(cut, at);
    CHECK(cut.now() == at);
  }
  finish(cut, kEnd);
  CHECK(told(cut) == first);
}

TEST_CASE("fast-forward: samples go on in skipped time, and bytes with them") {
  Simulation simulation(forwarded(steady_star()));
  finish(simulation, kEnd);
  std::vector<double> bytes;
  for (const Record& record : simulation.records()) {
    if (record.kind == Record::Kind::receive && record.index == 0) bytes.push_back(record.values[0]);
  }
  REQUIRE(bytes.size() == kEnd / (10 * kMillisecond) + 1);
  // A third of 10 Gb/s.
  for (size_t i = 2; i < bytes.size(); ++i) CHECK(bytes[i] - bytes[i - 1] == doctest::Approx(3.86e6).epsilon(0.02));
}

TEST_CASE("fast-forward: nothing is skipped over what is due") {
  constexpr Time kDue = 40 * kMillisecond;
  SimulationConfig config = forwarded(steady_star(), {kDue, kEnd});
  config.reset_after = 30 * kMillisecond;
  Simulation simulation(config);
  finish(simulation, kDue);
  for (const Simulation::QueueLengths& queue : simulation.queue_lengths()) {
    CHECK(queue.lengths.total() == doctest::Approx(static_cast<double>(kDue - config.reset_after)).epsilon(0.0001));
  }
  simulation.fabric().set_link(0, false);
  finish(simulation, kEnd);
  const FastForwardReport report = simulation.forward()->report();
  REQUIRE(!report.stretches.empty());
  for (const SkippedStretch& stretch : report.stretches) {
    for (const Time at : {config.reset_after, kDue}) CHECK((stretch.to <= at || stretch.from > at));
  }
  // Nothing comes from host 0 any more but what the switch holds.
  SimulationConfig plain = config;
  plain.fast_forward.reset();
  Simulation exact(plain);
  finish(exact, kDue);
  exact.fabric().set_link(0, false);
  finish(exact, kEnd);
  const auto delivered = [](Simulation& of) {
    return reinterpret_cast<const QpCounters*>(of.all_counters().receivers.words.data())->rx_bytes;
  };
  CHECK(static_cast<double>(delivered(simulation)) == doctest::Approx(static_cast<double>(delivered(exact))).epsilon(0.01));
}

TEST_CASE("fast-forward: what cannot be skipped is simulated, and the reason is told") {
  SimulationConfig finite = steady_star();
  finite.flows[1].stream.total_bytes = 1'000'000;
  CHECK(reason_of(finite) == "flows have an end: only such as send all the time are forwarded");
  SimulationConfig traced = steady_star();
  traced.taps = {{0, 3}};
  CHECK(reason_of(traced) == "frames are traced");
  SimulationConfig storming = steady_star();
  storming.nics[3].parameters.pause_storm = {.priorities = 8, .start = kMillisecond, .stop = 2 * kMillisecond};
  CHECK(reason_of(storming) == "a host pauses its link at times of its own");
  SimulationConfig late = steady_star();
  late.flows[2].start = kEnd - kMillisecond;
  CHECK(reason_of(late) == "the network was not in a steady state for long enough");
}

TEST_CASE("fast-forward: of a drift too slow for the stretches that are compared no more is skipped than comes to the bound") {
  // TIMELY far below its thresholds adds `delta` each round trip: rates grow all the time, by hardly anything in a stretch.
  SimulationConfig config = star(2, 10 * kGigabit);
  config.transport.window = 2'048;
  TimelySender::Parameters timely;
  timely.delta = 2'000'000;
  for (SimulatedNic& nic : config.nics) {
    nic.parameters.congestion = timely;
    nic.parameters.line_rate_start = false;
    nic.parameters.initial_rate = kGigabit;
  }
  config.flows.push_back(flow(0, 1));
  config.flows[0].reliable = true;
  config.flows[0].stop = kEnd;
  config.all_distributions = true;
  Simulation exact(config), simulation(forwarded(config, {kEnd}, 0.03));
  finish(exact, kEnd);
  finish(simulation, kEnd);
  REQUIRE(!simulation.forward()->report().stretches.empty());
  const auto bytes = static_cast<double>(received_bytes(exact));
  CHECK(std::abs(static_cast<double>(received_bytes(simulation)) - bytes) < 0.03 * bytes);
}

}  // namespace
}  // namespace weir::test
