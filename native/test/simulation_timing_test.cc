// When frames arrive and messages complete, to the nanosecond, against sums done by hand.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "test/simulation_harness.h"

namespace weir::test {
namespace {

// The last bit of a frame leaves so long after its first, rounded down.
Time time_of(uint32_t frame, Rate rate) { return static_cast<Time>(wire_bytes(frame)) * 8 * kSecond / rate; }

// The end of `count` frames of kFrame bytes back to back, rounded down only once.
Time time_of_run(uint64_t count, Rate rate) {
  return static_cast<Time>(count * wire_bytes(kFrame) * 8 * kSecond / static_cast<uint64_t>(rate));
}

TEST_CASE("simulation: a packet through one switch takes two times its serialisation and two cables") {
  // 1082 bytes and 24 beside them are 8848 bits.
  const std::pair<Rate, Time> cases[] = {{40 * kGigabit, 221}, {100 * kGigabit, 88}, {400 * kGigabit, 22}};
  for (const auto& [rate, serialisation] : cases) {
    CAPTURE(rate);
    SimulationConfig config = star(2, rate);
    config.flows.push_back(flow(0, 1));
    config.flows[0].stream.total_bytes = 1'024;
    config.flows[0].start = 12'345;
    config.taps = {{1, 0}, {0, 1}};
    Simulation simulation(config);
    finish(simulation, 12'344);
    CHECK(simulation.flows_started() == 0);
    CHECK(simulation.fabric().hops() == 0);
    finish(simulation, 12'345 + 2 * serialisation + 2 * kCable - 1);
    CHECK(simulation.flows_started() == 1);
    CHECK(simulation.flows_ended() == 0);
    CHECK(simulation.finished().empty());
    finish(simulation, 12'345 + 2 * serialisation + 2 * kCable);
    CHECK(simulation.flows_ended() == 1);
    REQUIRE(simulation.finished().size() == 1);
    const Simulation::Finished& done = simulation.finished()[0];
    CHECK(done.flow == 0);
    CHECK(done.number == 0);
    CHECK(done.bytes == 1'024);
    CHECK(done.start == 12'345);
    CHECK(done.end == 12'345 + 2 * (serialisation + kCable));
    const std::vector<Traced> frames = read_trace(simulation.fabric().take_trace());
    REQUIRE(frames.size() == 2);
    CHECK(frames[0].length == kFrame);
    CHECK(frames[0].at == 12'345 + serialisation);
    CHECK(frames[1].at == 12'345 + 2 * serialisation + kCable);
  }
}

TEST_CASE("simulation: frames back to back carry the remainder of a nanosecond from one to the next") {
  for (const Rate rate : {40 * kGigabit, 100 * kGigabit, 400 * kGigabit}) {
    CAPTURE(rate);
    constexpr uint64_t kEach = 500;
    // Two hosts fill the link to a third, and two flows of one host fill its own.
    SimulationConfig config = star(3, rate);
    without_congestion_control(config);
    config.switches[0].parameters.ecn_priorities = 0;
    config.switches[0].parameters.pfc_priorities = 0;
    for (const auto& [from, to] : {std::pair{0u, 2u}, std::pair{1u, 2u}, std::pair{2u, 0u}, std::pair{2u, 0u}}) {
      config.flows.push_back(flow(from, to));
      config.flows.back().stream.total_bytes = kEach * 1'024;
    }
    config.taps = {{0, 2}, {3, 0}};
    Simulation simulation(config);
    finish(simulation, kMillisecond);
    const std::vector<Traced> frames = read_trace(simulation.fabric().take_trace());
    const std::vector<Time> merged = times_at(frames, 0);
    const std::vector<Time> shared = times_at(frames, 1);
    REQUIRE(merged.size() == 2 * kEach);
    REQUIRE(shared.size() == 2 * kEach);
    const Time first = time_of(kFrame, rate) + kCable;
    for (uint64_t i = 0; i < 2 * kEach; ++i) {
      REQUIRE(merged[i] == first + time_of_run(i + 1, rate));
      REQUIRE(shared[i] == time_of_run(i + 1, rate));
    }
    CHECK(dropped(simulation) == 0);
  }
}

TEST_CASE("simulation: a lone flow at line rate never drifts from it") {
  for (const Rate rate : {40 * kGigabit, 100 * kGigabit, 400 * kGigabit}) {
    CAPTURE(rate);
    constexpr uint64_t kPackets = 20'000;
    SimulationConfig config = star(2, rate);
    config.flows.push_back(flow(0, 1));
    config.flows[0].stream.total_bytes = kPackets * 1'024;
    config.taps = {{1, 0}, {0, 1}};
    Simulation simulation(config);
    finish(simulation, 10 * kMillisecond);
    const std::vector<Traced> frames = read_trace(simulation.fabric().take_trace());
    const std::vector<Time> sent = times_at(frames, 0);
    const std::vector<Time> forwarded = times_at(frames, 1);
    REQUIRE(sent.size() == kPackets);
    REQUIRE(forwarded.size() == kPackets);
    const double each = static_cast<double>(wire_bytes(kFrame)) * 8e9 / static_cast<double>(rate);
    for (uint64_t i = 0; i < kPackets; ++i) {
      // A packet is released at a whole nanosecond and its end is rounded down to one.
      REQUIRE(std::abs(static_cast<double>(sent[i]) - static_cast<double>(i + 1) * each) <= 1.001);
      const Time through = forwarded[i] - sent[i] - kCable;
      REQUIRE(through >= time_of(kFrame, rate));
      REQUIRE(through <= time_of(kFrame, rate) + 1);
    }
    REQUIRE(simulation.finished().size() == 1);
    CHECK(simulation.finished()[0].end == forwarded.back() + kCable);
  }
}

TEST_CASE("simulation: a reliable message is complete when its acknowledgement is back") {
  for (const Rate rate : {40 * kGigabit, 100 * kGigabit, 400 * kGigabit}) {
    for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
      for (const uint32_t packets : {1u, 10u}) {
        CAPTURE(rate);
        CAPTURE(packets);
        SimulationConfig config = star(2, rate);
        config.transport.recovery = recovery;
        config.flows.push_back(flow(0, 1));
        config.flows[0].reliable = true;
        config.flows[0].start = 777;
        config.flows[0].stream.message_bytes = packets * 1'024;
        config.flows[0].stream.total_bytes = packets * 1'024;
        config.taps = {{0, 1}};
        Simulation simulation(config);
        finish(simulation, kMillisecond);
        const std::vector<Time> forwarded = times_at(read_trace(simulation.fabric().take_trace()), 0);
        REQUIRE(forwarded.size() == packets);
        if (packets == 1) CHECK(forwarded[0] == 777 + 2 * time_of(kFrame, rate) + kCable);
        REQUIRE(simulation.finished().size() == 1);
        const Simulation::Finished& done = simulation.finished()[0];
        CHECK(done.bytes == packets * 1'024);
        CHECK(done.start == 777);
        CHECK(done.end == forwarded.back() + kCable + 2 * (time_of(kAckFrame, rate) + kCable));
        CHECK(simulation.flows_ended() == 1);
        CHECK(simulation.fabric().nic_at(1).transport_counters().tx_acks == 1);
      }
    }
  }
}

TEST_CASE("simulation: of messages one at a time each is sent when the one before is complete") {
  SimulationConfig config = star(2, 100 * kGigabit);
  config.sizes = {1, 5'000, 1'024, 70'000, 256};
  config.flows.push_back(flow(0, 1));
  config.flows[0].reliable = true;
  config.flows[0].outstanding = 1;
  config.flows[0].start = 1'000;
  config.flows[0].sizes_first = 1;
  config.flows[0].sizes_count = 3;
  config.taps = {{1, 0}};
  Simulation simulation(config);
  finish(simulation, kMillisecond);
  REQUIRE(simulation.finished().size() == 3);
  CHECK(simulation.flows_ended() == 1);
  const std::vector<Time> sent = times_at(read_trace(simulation.fabric().take_trace()), 0);
  REQUIRE(sent.size() == 5 + 1 + 69);
  Time start = 1'000;
  const size_t first_of[3] = {0, 5, 6};
  const uint32_t first_frame[3] = {kFrame, kFrame, kFrame};
  for (uint32_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    const Simulation::Finished& done = simulation.finished()[i];
    CHECK(done.number == i);
    CHECK(done.bytes == config.sizes[1 + i]);
    CHECK(done.start == start);
    CHECK(sent[first_of[i]] == start + time_of(first_frame[i], 100 * kGigabit));
    CHECK(done.end > done.start + 4 * kCable);
    start = done.end;
  }
}

TEST_CASE("simulation: with two messages under way the second does not wait for the first") {
  SimulationConfig config = star(2, 100 * kGigabit);
  config.flows.push_back(flow(0, 1));
  config.flows[0].reliable = true;
  config.flows[0].outstanding = 2;
  config.flows[0].stream.total_bytes = 3 * 1'024;
  Simulation simulation(config);
  finish(simulation, kMillisecond);
  REQUIRE(simulation.finished().size() == 3);
  CHECK(simulation.finished()[0].start == 0);
  CHECK(simulation.finished()[1].start == 0);
  CHECK(simulation.finished()[2].start == simulation.finished()[0].end);
}

TEST_CASE("simulation: nothing begins to leave at or after a flow's stop") {
  for (const bool reliable : {false, true}) {
    CAPTURE(reliable);
    constexpr Time kStop = 50'003;
    SimulationConfig config = star(2, 100 * kGigabit);
    config.flows.push_back(flow(0, 1));
    config.flows[0].reliable = reliable;
    config.flows[0].outstanding = 64;
    config.flows[0].start = 1'000;
    config.flows[0].stop = kStop;
    config.taps = {{1, 0}};
    Simulation simulation(config);
    finish(simulation, 100 * kMillisecond);
    const std::vector<Time> sent = times_at(read_trace(simulation.fabric().take_trace()), 0);
    REQUIRE(sent.size() > 100);
    CHECK(sent.front() == 1'000 + time_of(kFrame, 100 * kGigabit));
    CHECK(sent.back() - time_of(kFrame, 100 * kGigabit) < kStop);
    if (!reliable) CHECK(sent.back() > kStop - 100);
    CHECK(simulation.counters(simulation.receiver(0)).rx_packets == sent.size());
  }
}

TEST_CASE("simulation: a pause that runs out while nothing waits is over for what comes then") {
  // The frame that ends the pause is lost half of the time, as is everything else on the slow host's link.
  bool lost = false;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    CAPTURE(seed);
    constexpr Time kLater = 3 * kMillisecond;
    const Rate rate = 40 * kGigabit;
    SimulationConfig config = star(2, rate);
    config.seed = seed;
    config.nics[1].parameters.receive_buffer = {.size = 1'000'000, .drain = 2 * kGigabit, .xoff = 7'000, .xon = 2'000};
    config.flows = {flow(0, 1), flow(0, 1)};
    config.flows[0].stream.total_bytes = 20 * 1'024;
    config.flows[1].stream.total_bytes = 1'024;
    config.flows[1].start = kLater;
    config.links[1].impairment.emplace().loss = 0.5;
    Simulation simulation(config);
    Time before = 0;
    while (!simulation.run(2 * kLater, 1)) {
      REQUIRE(simulation.fabric().now() >= before);
      before = simulation.fabric().now();
    }
    simulation.settle();
    const SwitchPriorityCounters& paused = simulation.fabric().switch_at(0).counters(1, 3);
    lost = lost || paused.pfc_rx_pause_duration == 838'848;
    for (const Simulation::Finished& done : simulation.finished()) {
      if (done.flow == 1) CHECK(done.end == kLater + 2 * (time_of(kFrame, rate) + kCable));
    }
  }
  CHECK(lost);
}

}  // namespace
}  // namespace weir::test
