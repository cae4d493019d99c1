// A run is a function of its configuration: not of how it is cut into calls, nor of what is looked at meanwhile.
#include <doctest/doctest.h>

#include <vector>

#include "base/random.h"
#include "test/simulation_outcome.h"

namespace weir::test {
namespace {

constexpr Time kEnd = 300 * kMicrosecond;

// Congested, lossy, marked and paused; reliable flows and streams.
SimulationConfig busy(uint64_t seed = 1) {
  SimulationConfig config = star(5, 40 * kGigabit);
  config.seed = seed;
  config.switches[0].parameters.seed = seed;
  config.switches[0].parameters.red = {.kmin = 2'000, .kmax = 60'000, .pmax = 0.2};
  config.switches[0].parameters.buffer.total = 1'100'000;
  for (uint32_t i = 0; i < 4; ++i) {
    NetworkFlow f = flow(i, 4, static_cast<uint16_t>(i));
    f.start = i * 7'001;
    f.stream.operation = i % 2 == 0 ? Operation::write : Operation::send;
    f.stream.message_bytes = 20'000 + 999 * i;
    f.reliable = i < 2;
    if (i == 3) f.stream.total_bytes = 200'000;
    config.flows.push_back(f);
  }
  config.flows.push_back(flow(4, 0, 9));
  config.flows.back().rate_cap = 3 * kGigabit;
  config.flows.back().stop = 200'000;
  config.transport.timeout = 3;
  config.links[1].impairment = ImpairmentParameters{
      .loss = 0.003, .duplicate = 0.01, .corrupt = 0.001, .reorder = 0.002, .jitter = 300, .reorder_delay = 900};
  config.sample_interval = 10'000;
  config.reset_after = 50'000;
  config.sampled_flows = {0, 1, 2, 3, 4};
  config.sampled_queues = {{0, 4, 3}, {0, 0, 3}};
  return config;
}

Outcome run_whole(const SimulationConfig& config) {
  Simulation simulation(config);
  finish(simulation, kEnd);
  return outcome(simulation);
}

TEST_CASE("simulation: the same configuration gives the same run, and another seed another") {
  const Outcome first = run_whole(busy());
  CHECK(first.messages.size() > 5);
  CHECK(first.records.size() > 30 * 12 * 8);
  CHECK(first.distribution[0] == 250'000);
  check_same(first, run_whole(busy()));
  const Outcome other = run_whole(busy(2));
  CHECK(first.counters != other.counters);
  CHECK(first.messages != other.messages);
  CHECK(first.records != other.records);
  // Each of the two uses of the seed counts by itself: the switch's marks and the link's accidents.
  for (const bool of_switch : {true, false}) {
    SimulationConfig config = busy();
    (of_switch ? config.switches[0].parameters.seed : config.seed) = 2;
    CHECK(run_whole(config).counters != first.counters);
  }
}

TEST_CASE("simulation: how a run is cut into calls does not change it") {
  SimulationConfig config = busy();
  config.taps = {{0, 4}, {3, 0}};
  const Outcome whole = run_whole(config);
  CHECK(whole.trace.size() > 10'000);
  for (const uint64_t events : {uint64_t{1}, uint64_t{7}, uint64_t{1'000}}) {
    CAPTURE(events);
    Simulation simulation(config);
    uint64_t before = 0;
    while (!simulation.run(kEnd, events)) {
      REQUIRE(simulation.fabric().events() >= before + events);
      before = simulation.fabric().events();
    }
    check_same(whole, outcome(simulation));
  }
  for (const Time piece : {Time{1'000}, Time{10'000}, Time{7'777}}) {
    CAPTURE(piece);
    Simulation simulation(config);
    for (Time at = 0; at < kEnd; at += piece) {
      finish(simulation, at);
      REQUIRE(simulation.fabric().now() == at);
    }
    finish(simulation, kEnd);
    check_same(whole, outcome(simulation));
  }
  Random random(5);
  Simulation simulation(config);
  for (Time at = 0; at < kEnd;) {
    at = std::min(kEnd, at + static_cast<Time>(random.next() % 4'000));
    while (!simulation.run(at, 1 + random.next() % 30)) {
    }
    // Looking at things is free.
    if (random.next() % 4 == 0) everything(simulation);
  }
  check_same(whole, outcome(simulation));
}

TEST_CASE("simulation: samples and taps change nothing of what happens") {
  const Outcome reference = run_whole(busy());
  SimulationConfig config = busy();
  for (const Time interval : {Time{0}, Time{1}, Time{333}, Time{40'000}}) {
    CAPTURE(interval);
    config.sample_interval = interval;
    if (interval == 0) config.sampled_flows.clear();
    Outcome other = run_whole(config);
    CHECK(reference.counters == other.counters);
    CHECK(reference.messages == other.messages);
    CHECK(reference.distribution == other.distribution);
    CHECK(other.records.empty() == (interval == 0));
    config = busy();
  }
  for (uint32_t i = 0; i < 5; ++i) {
    config.taps.push_back({0, static_cast<uint16_t>(i)});
    config.taps.push_back({1 + i, 0});
  }
  const Outcome traced = run_whole(config);
  CHECK(!traced.trace.empty());
  CHECK(reference.counters == traced.counters);
  CHECK(reference.messages == traced.messages);
  CHECK(reference.records == traced.records);
}

TEST_CASE("simulation: all queues that held anything have their distribution, those that are sampled the same as alone") {
  const Outcome reference = run_whole(busy());
  SimulationConfig config = busy();
  config.sampled_queues = {{0, 4, 3}};
  Simulation simulation(config);
  finish(simulation, kEnd);
  const auto alone = simulation.queue_lengths();
  REQUIRE(alone.size() == 1);
  config.all_distributions = true;
  Simulation all(config);
  finish(all, kEnd);
  CHECK(everything(all) == reference.counters);
  const auto kept = all.queue_lengths();
  SoftSwitch& device = all.fabric().switch_at(0);
  size_t held = 0;
  for (uint16_t port = 0; port < device.port_count(); ++port) {
    for (int p = 0; p < kPriorities; ++p) held += device.counters(port, p).queue_watermark_bytes > 0;
  }
  CHECK(held > 1);
  CHECK(kept.size() <= held);  // some only during the warm-up
  CHECK(kept.size() > 1);
  for (const auto& [queue, lengths] : kept) {
    CAPTURE(queue.port);
    CAPTURE(static_cast<int>(queue.priority));
    CHECK(lengths.total() == static_cast<uint64_t>(kEnd - config.reset_after));
    if (queue.port != 4 || queue.priority != 3) continue;
    CHECK(lengths.max() == alone[0].lengths.max());
    CHECK(lengths.weighted_sum() == alone[0].lengths.weighted_sum());
  }
}

TEST_CASE("simulation: samples say what the counters say, at their times") {
  SimulationConfig config = busy();
  config.sample_interval = 10'000;
  Simulation simulation(config);
  for (Time at = 0; at <= kEnd; at += 10'000) {
    CAPTURE(at);
    finish(simulation, at);
    size_t flows = 0, queues = 0;
    for (const Record& record : simulation.records()) {
      CHECK(record.time == at);
      if (record.kind == Record::Kind::transmit) {
        CHECK(record.index == flows);
        CHECK(record.values[3] == 0);  // DCQCN has no window
      } else if (record.kind == Record::Kind::receive) {
        const QpCounters& counters = simulation.counters(simulation.receiver(record.index));
        CHECK(record.index == flows++);
        CHECK(record.values[0] == static_cast<double>(counters.rx_bytes));
        CHECK(record.values[1] == static_cast<double>(counters.rx_wire_bytes));
        CHECK(record.values[2] == static_cast<double>(counters.cnp_sent));
        CHECK(record.values[3] == static_cast<double>(counters.lost));
      } else if (record.kind == Record::Kind::queue) {
        const uint16_t port = static_cast<uint16_t>(record.index / 8);
        CHECK(port == config.sampled_queues[queues++].port);
        CHECK(record.index % 8 == 3);
        CHECK(record.values[0] == static_cast<double>(simulation.fabric().switch_at(0).queue_bytes(port, 3)));
        CHECK(record.values[1] >= record.values[0]);
        CHECK(record.values[2] ==
              static_cast<double>(simulation.fabric().switch_at(0).counters(port, 3).wred_ecn_marked_packets));
      }
    }
    CHECK(flows == 5);
    CHECK(queues == 2);
    simulation.records().clear();
  }
}

}  // namespace
}  // namespace weir::test
