// No frame is made or lost without being counted, and what a link is told to do to frames it does, as often as it is told.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <vector>

#include "test/simulation_outcome.h"

namespace weir::test {
namespace {

void check_drained(Simulation& simulation) {
  check_balance(simulation);
  CHECK(simulation.fabric().packets() == 0);
  for (size_t i = 0; i < simulation.fabric().switch_count(); ++i) {
    CHECK(simulation.fabric().switch_at(i).held() == 0);
    CHECK(simulation.fabric().switch_at(i).buffer().occupied() == 0);
  }
}

SimulationConfig incast(uint32_t senders, bool reliable) {
  SimulationConfig config = star(senders + 1, 40 * kGigabit);
  for (uint32_t i = 0; i < senders; ++i) {
    NetworkFlow f = flow(i, senders, static_cast<uint16_t>(i));
    f.reliable = reliable;
    f.stream.message_bytes = 50'000;
    f.stream.total_bytes = 1'000'000;
    config.flows.push_back(f);
  }
  return config;
}

TEST_CASE("simulation: an incast under PFC loses nothing, and everything is accounted for at any time") {
  for (const bool reliable : {false, true}) {
    CAPTURE(reliable);
    SimulationConfig config = incast(8, reliable);
    without_congestion_control(config);
    config.transport.window = 2'048;
    config.switches[0].parameters.buffer.total = 2'000'000;
    Simulation simulation(config);
    for (Time at = 0; at < 2 * kMillisecond; at += 10'007) {
      finish(simulation, at);
      check_balance(simulation);
    }
    finish(simulation, 20 * kMillisecond);
    check_drained(simulation);
    CHECK(dropped(simulation) == 0);
    SoftSwitch& device = simulation.fabric().switch_at(0);
    for (uint16_t port = 0; port < 8; ++port) {
      CHECK(device.counters(port, 3).pfc_tx_transitions > 0);
      CHECK(simulation.fabric().nic_at(port).counters(3).rx_prio_pause > 0);
      CHECK(device.pauses().stopped(port, 3) == false);
    }
    CHECK(simulation.flows_ended() == 8);
    for (uint32_t i = 0; i < 8; ++i) {
      const QpCounters& received = simulation.counters(simulation.receiver(i));
      CHECK(received.rx_bytes == 1'000'000);
      CHECK(received.rx_messages == 20);
      CHECK(received.lost == 0);
    }
    // Nothing is sent twice without a loss.
    for (size_t i = 0; i < 8; ++i) CHECK(simulation.fabric().nic_at(i).transport_counters().retransmitted == 0);
    CHECK(simulation.finished().size() == (reliable ? 8 * 20 : 8));
  }
}

TEST_CASE("simulation: an incast without PFC drops, and says so everywhere") {
  SimulationConfig config = incast(8, false);
  without_congestion_control(config);
  config.switches[0].parameters.pfc_priorities = 0;
  config.switches[0].parameters.buffer.total = 300'000;
  // Rates differ, or the same sender would find room each time.
  for (uint32_t i = 0; i < 8; ++i) config.flows[i].rate_cap = (10 + i) * kGigabit;
  Simulation simulation(config);
  finish(simulation, 20 * kMillisecond);
  check_drained(simulation);
  uint64_t lost = 0, sent = 0, received = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    const QpCounters& counters = simulation.counters(simulation.receiver(i));
    lost += counters.lost;
    received += counters.rx_packets;
    sent += simulation.counters(simulation.sender(i)).tx_packets;
  }
  CHECK(dropped(simulation) > 1'000);
  CHECK(sent == received + dropped(simulation));
  // Only what was dropped at the end of a stream leaves no gap.
  CHECK(lost <= dropped(simulation));
  CHECK(lost > dropped(simulation) / 2);
}

TEST_CASE("simulation: nothing leaks over links that lose, spoil, duplicate and hold back") {
  for (const bool reliable : {false, true}) {
    for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
      CAPTURE(reliable);
      SimulationConfig config = incast(4, reliable);
      config.transport.recovery = recovery;
      config.transport.timeout = 6;
      for (SimulatedLink& link : config.links) {
        link.impairment = ImpairmentParameters{
            .loss = 0.002, .duplicate = 0.02, .corrupt = 0.002, .reorder = 0.01, .jitter = 700, .reorder_delay = 5'000};
      }
      Simulation simulation(config);
      for (Time at = 0; at < 3 * kMillisecond; at += 50'021) {
        finish(simulation, at);
        check_balance(simulation);
      }
      finish(simulation, 2 * kSecond);
      check_drained(simulation);
      CHECK(dropped(simulation) == 0);
      for (uint32_t i = 0; i < 4 && reliable; ++i) {
        const QpCounters& counters = simulation.counters(simulation.receiver(i));
        CHECK(counters.rx_bytes == 1'000'000);
        CHECK(counters.rx_messages == 20);
        CHECK(counters.lost > 0);
        CHECK(counters.duplicate > 0);
      }
      if (reliable) CHECK(simulation.flows_ended() == 4);
      if (reliable) CHECK(simulation.finished().size() == 80);
    }
  }
}

// One stream of `packets` over an impaired first link.
SimulationConfig impaired(const ImpairmentParameters& impairment, uint64_t packets) {
  SimulationConfig config = star(2, 100 * kGigabit);
  config.flows.push_back(flow(0, 1));
  config.flows[0].stream.total_bytes = packets * 1'024;
  config.links[0].impairment = impairment;
  return config;
}

// Checks how often a thing of this probability happens in so many trials, to within five standard deviations.
void check_count(uint64_t count, uint64_t trials, double probability) {
  const double mean = static_cast<double>(trials) * probability;
  CAPTURE(count);
  CAPTURE(mean);
  CHECK(std::abs(static_cast<double>(count) - mean) < 5 * std::sqrt(mean * (1 - probability)));
}

TEST_CASE("simulation: a link loses, spoils, duplicates and holds back as often as it should, one direction like the other") {
  constexpr uint64_t kPackets = 40'000;
  SimulationConfig config =
      impaired({.loss = 0.01, .duplicate = 0.03, .corrupt = 0.02, .reorder = 0.04, .jitter = 0, .reorder_delay = 400}, kPackets);
  without_congestion_control(config);
  config.flows.push_back(flow(1, 0));
  config.flows[1].stream.total_bytes = kPackets * 1'024;
  config.links[1].impairment.emplace();  // and does nothing
  Simulation simulation(config);
  finish(simulation, 20 * kMillisecond);
  check_drained(simulation);
  for (size_t side : {0, 1}) {
    const LinkCounters& link = simulation.fabric().link_counters(0, side);
    CHECK(link.frames == kPackets);
    check_count(link.lost, kPackets, 0.01);
    check_count(link.corrupted, kPackets - link.lost, 0.02);
    check_count(link.duplicated, kPackets - link.lost, 0.03);
    check_count(link.reordered, kPackets - link.lost, 0.04);
    const LinkCounters& healthy = simulation.fabric().link_counters(1, side);
    CHECK(healthy.lost + healthy.corrupted + healthy.duplicated + healthy.reordered == 0);
  }
  CHECK(simulation.fabric().link_counters(0, 0).lost != simulation.fabric().link_counters(0, 1).lost);
  CHECK(simulation.fabric().link_counters(0, 0).wire_bytes == kPackets * wire_bytes(kFrame));
}

TEST_CASE("simulation: a stream counts what it loses") {
  constexpr uint64_t kPackets = 20'000;
  Simulation simulation(impaired({.loss = 0.01}, kPackets));
  finish(simulation, 20 * kMillisecond);
  check_drained(simulation);
  const uint64_t lost = simulation.fabric().link_counters(0, 0).lost;
  const QpCounters& received = simulation.counters(simulation.receiver(0));
  CHECK(lost > 100);
  CHECK(received.rx_packets == kPackets - lost);
  CHECK(received.rx_bytes == (kPackets - lost) * 1'024);
  CHECK(received.lost <= lost);
  CHECK(received.lost + 3 >= lost);  // those at the end leave no gap
  CHECK(received.duplicate == 0);
}

TEST_CASE("simulation: what streams have sent has come, was dropped, or is under way, at any time") {
  SimulationConfig config = incast(4, false);
  without_congestion_control(config);
  config.switches[0].parameters.pfc_priorities = 0;
  config.switches[0].parameters.buffer.total = 200'000;
  for (NetworkFlow& f : config.flows) f.stream.total_bytes = 0;
  config.links[2].impairment.emplace().loss = 0.01;
  Simulation simulation(config);
  uint64_t most = 0;
  for (Time at = 0; at < kMillisecond; at += 33'331) {
    CAPTURE(at);
    finish(simulation, at);
    const std::vector<uint32_t> under_way = simulation.under_way();
    REQUIRE(under_way.size() == 4);
    uint64_t sent = 0, received = 0, on_the_way = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      sent += simulation.counters(simulation.sender(i)).tx_packets;
      received += simulation.counters(simulation.receiver(i)).rx_packets;
      on_the_way += under_way[i];
    }
    CHECK(sent == received + on_the_way + dropped(simulation) + simulation.fabric().link_counters(2, 0).lost);
    CHECK(on_the_way == simulation.fabric().packets());
    most = std::max(most, on_the_way);
  }
  CHECK(most > 50);
  CHECK(dropped(simulation) > 1'000);
}

// Address space of this process, which an address space limit (RLIMIT_AS) counts.
uint64_t address_space() {
  std::ifstream file("/proc/self/statm");
  uint64_t pages = 0;
  file >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

TEST_CASE("simulation: memory is as much as the frames under way need, and a long link takes what it holds") {
  constexpr uint64_t kMegabyte = 1 << 20;
  const uint64_t before = address_space();
  SimulationConfig config = star(2, 100 * kGigabit);
  without_congestion_control(config);
  for (SimulatedLink& link : config.links) link.delay = 5 * kMillisecond;
  config.flows.push_back(flow(0, 1));
  config.flows[0].stream.message_bytes = 64;
  config.flows[0].stream.total_bytes = 64 * 700'000;
  Simulation simulation(config);
  CHECK(address_space() - before < 512 * kMegabyte);
  const uint32_t at_first = simulation.fabric().room();
  finish(simulation, 7 * kMillisecond);
  check_balance(simulation);
  CHECK(simulation.fabric().packets() > at_first);
  CHECK(address_space() - before < 1'024 * kMegabyte);
  finish(simulation, 30 * kMillisecond);
  check_drained(simulation);
  CHECK(simulation.fabric().nic_at(0).counters().tx_no_descriptor == 0);
  CHECK(simulation.counters(simulation.receiver(0)).rx_packets == 700'000);
  CHECK(simulation.counters(simulation.receiver(0)).rx_bytes == 64 * 700'000);
  CHECK(simulation.counters(simulation.receiver(0)).lost == 0);
}

TEST_CASE("simulation: a buffer holds as many frames as it has bytes for, however short they are") {
  SimulationConfig config = star(3, 100 * kGigabit);
  without_congestion_control(config);
  config.switches[0].parameters.buffer.total = 200'000'000;
  for (uint32_t i = 0; i < 2; ++i) {
    config.flows.push_back(flow(i, 2, static_cast<uint16_t>(i)));
    config.flows[i].stream.message_bytes = 64;
    config.flows[i].stream.total_bytes = 64 * 300'000;
  }
  Simulation simulation(config);
  const uint32_t at_first = simulation.fabric().room();
  finish(simulation, 3'500'000);
  CHECK(simulation.fabric().switch_at(0).held() > at_first);
  check_balance(simulation);
  finish(simulation, 20 * kMillisecond);
  check_drained(simulation);
  CHECK(dropped(simulation) == 0);
  for (uint32_t i = 0; i < 2; ++i) CHECK(simulation.counters(simulation.receiver(i)).rx_packets == 300'000);
}

TEST_CASE("simulation: jitter delays frames and keeps their order, and only holding back overtakes") {
  constexpr uint64_t kPackets = 10'000;
  for (const Time jitter : {Time{50}, Time{100'000}}) {
    CAPTURE(jitter);
    SimulationConfig config = impaired({.jitter = jitter}, kPackets);
    config.flows[0].rate_cap = 50 * kGigabit;
    config.taps = {{1, 0}, {0, 1}};
    Simulation simulation(config);
    finish(simulation, 20 * kMillisecond);
    check_drained(simulation);
    const QpCounters& received = simulation.counters(simulation.receiver(0));
    CHECK(received.rx_packets == kPackets);
    CHECK(received.lost == 0);
    CHECK(received.duplicate == 0);
    // A frame is never late by more than the jitter and the frames before it.
    const std::vector<Traced> frames = read_trace(simulation.fabric().take_trace());
    const std::vector<Time> sent = times_at(frames, 0);
    const std::vector<Time> forwarded = times_at(frames, 1);
    REQUIRE(sent.size() == kPackets);
    REQUIRE(forwarded.size() == kPackets);
    Time least = kNever, most = 0;
    for (size_t i = 0; i < kPackets; ++i) {
      least = std::min(least, forwarded[i] - sent[i]);
      most = std::max(most, forwarded[i] - sent[i]);
    }
    CHECK(least >= kCable + 88);
    if (jitter == 50) CHECK(least <= kCable + 90);
    CHECK(most > kCable + 88 + jitter / 2);
    if (jitter == 50) CHECK(most <= kCable + 88 + jitter + 90);
  }
  Simulation simulation(impaired({.reorder = 0.01, .reorder_delay = 3'000}, kPackets));
  finish(simulation, 20 * kMillisecond);
  check_drained(simulation);
  const uint64_t held_back = simulation.fabric().link_counters(0, 0).reordered;
  const QpCounters& received = simulation.counters(simulation.receiver(0));
  CHECK(held_back > 50);
  // A packet that is overtaken is first missed and then too late.
  CHECK(received.lost == received.duplicate);
  CHECK(received.lost <= held_back);
  CHECK(received.lost + 40 > held_back);
  CHECK(received.rx_packets == kPackets - received.duplicate);
}

TEST_CASE("simulation: reliable flows complete every message over a link that loses one frame in a hundred") {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    for (const Operation operation : {Operation::write, Operation::send, Operation::read}) {
      CAPTURE(static_cast<int>(recovery));
      CAPTURE(static_cast<int>(operation));
      SimulationConfig config = star(3, 100 * kGigabit);
      without_congestion_control(config);
      config.transport.recovery = recovery;
      config.transport.timeout = 7;
      config.links[0].impairment.emplace().loss = 0.01;
      for (uint32_t i = 0; i < 2; ++i) {
        config.flows.push_back(flow(0, 1 + i, static_cast<uint16_t>(i)));
        config.flows[i].reliable = true;
        config.flows[i].stream.operation = operation;
        config.flows[i].stream.message_bytes = 64'000;
        config.flows[i].stream.total_bytes = 3'200'000 + i;
      }
      Simulation simulation(config);
      finish(simulation, 2 * kSecond);
      check_drained(simulation);
      CHECK(simulation.flows_ended() == 2);
      uint64_t next[2] = {};
      for (const Simulation::Finished& done : simulation.finished()) {
        REQUIRE(done.number == next[done.flow]++);
        REQUIRE(done.bytes == (done.number < 50 ? 64'000 : 1));
        REQUIRE(done.end > done.start);
      }
      CHECK(next[0] == 50);
      CHECK(next[1] == 51);
      for (uint32_t i = 0; i < 2; ++i) {
        const QpCounters& received = simulation.counters(simulation.receiver(i));
        CHECK(received.rx_bytes == 3'200'000 + i);
        CHECK(received.rx_messages == 50 + i);
        CHECK(received.lost > 5);
        CHECK(simulation.counters(simulation.sender(i)).tx_packets > received.rx_packets);
      }
      uint64_t retransmitted = 0;
      for (uint32_t nic = 0; nic < 3; ++nic) retransmitted += simulation.fabric().nic_at(nic).transport_counters().retransmitted;
      CHECK(retransmitted > 20);
      CHECK(simulation.fabric().link_counters(0, 1).lost > 0);
    }
  }
}

}  // namespace
}  // namespace weir::test
