#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "test/histogram_figures.h"
#include "test/switch_harness.h"

using namespace weir;
using namespace weir::test;

namespace {

// 1000 bytes and 24 of overhead at 1 Gb/s.
constexpr Time kFrameTime = 8'192;

}  // namespace

TEST_CASE("soft switch: a port sends exactly at its rate, remainders included") {
  SwitchParameters p = switch_parameters(3);
  p.ports[2].rate = 700'000'000;  // 8192 bits last 11702.857 ns
  SwitchHarness h(p);
  for (int i = 0; i < 100; ++i) h.send(5'000, static_cast<uint16_t>(i % 2), 2);
  h.run(kSecond);
  const std::vector<Departure> left = h.at_port(2);
  REQUIRE(left.size() == 100);
  for (size_t i = 0; i < 100; ++i) {
    CHECK(left[i].at == 5'000 + static_cast<Time>((i + 1) * 8'192 * 10 / 7));
    CHECK(left[i].psn == i + 1);
  }
  h.check_drained();
  CHECK(h.device.counters(2).tx_packets == 100);
  CHECK(h.device.counters(2).tx_bytes == 100'000);
  CHECK(h.device.counters(2, 3).queue_watermark_bytes == 99'000);
  CHECK(h.device.buffer().watermark() == 99'000);
}

TEST_CASE("soft switch: a strict priority overtakes at the next frame boundary, the others share by weight") {
  SwitchParameters p = switch_parameters(2);
  p.scheduler.weights = {1, 1, 1, 3, 1, 1, 1, 1};
  SwitchHarness h(p);
  for (int i = 0; i < 400; ++i) {
    h.send(0, 0, 1, 3);
    h.send(0, 0, 1, 0);
  }
  h.send(100, 0, 1, 6);
  h.run(300 * kFrameTime);
  const std::vector<Departure> left = h.at_port(1);
  CHECK(left[1].psn == 801);  // behind the frame in flight, ahead of 799 others
  CHECK(left[1].at == 2 * kFrameTime);
  const double third = static_cast<double>(h.device.counters(1, 3).queue_packets);
  CHECK(third / static_cast<double>(h.device.counters(1, 0).queue_packets) == doctest::Approx(3).epsilon(0.05));
  h.check_balance();
  h.run(kSecond);
  h.check_drained();
}

TEST_CASE("soft switch: an unshaped port runs to completion") {
  SwitchParameters p = switch_parameters(2);
  p.ports[1].rate = 0;
  SwitchHarness h(p);
  for (int i = 0; i < 10; ++i) {
    h.send(i, 0, 1);
    h.collect();
    CHECK(h.departures.size() == static_cast<size_t>(i + 1));
    CHECK(h.departures.back().at == i);
  }
  CHECK(h.wire.next_deadline() == kNever);
  CHECK(h.device.counters(1, 3).queue_watermark_bytes == 0);
  CHECK(h.device.buffer().watermark() == 1'000);  // one at a time, for an instant each
  h.check_drained();
}

TEST_CASE("soft switch: without learning, groups go along the ports that flood and nowhere else") {
  SwitchParameters p = switch_parameters(4);
  for (const size_t port : {0, 1, 3}) p.ports[port].floods = true;
  SwitchHarness h(p);
  PacketMeta m = meta(0, 1, 0);
  m.destination_mac = 0xffffffffffff;
  h.receive(0, 0, m);
  h.run(kSecond);
  std::vector<uint16_t> out;
  for (const Departure& departure : h.departures) out.push_back(departure.port);
  CHECK(out == std::vector<uint16_t>{1, 3});
  CHECK(h.device.counters(0).flood_copies == 1);
  m.destination_mac = 0x3333ff000001;  // address by which IPv6 asks for a neighbour
  h.receive(kSecond, 3, m);
  h.run(2 * kSecond);
  CHECK(h.departures.size() == 4);
  h.receive(2 * kSecond, 2, m);  // a port beside the tree
  CHECK(h.device.counters(2).drop_no_route == 1);
  m.destination_mac = kHostMac + 77;  // somebody unknown is no group
  h.receive(2 * kSecond, 0, m);
  CHECK(h.device.counters(0).drop_no_route == 1);
  h.run(3 * kSecond);
  h.check_drained();
}

TEST_CASE("soft switch: what is not forwarded, and why") {
  SwitchHarness h(switch_parameters(3));
  PacketMeta m = meta(0, 1, 0);
  m.destination_mac = 0x0180c200000e;  // LLDP
  h.receive(0, 0, m);
  CHECK(h.device.counters(0).drop_reserved_address == 1);
  m.destination_mac = 0x0180c2000010;  // the next block is an ordinary group
  h.receive(0, 0, m);
  CHECK(h.device.counters(0).drop_no_route == 1);
  m.destination_mac = kHostMac + 77;
  h.receive(0, 0, m);
  CHECK(h.device.counters(0).drop_no_route == 2);
  h.send(0, 1, 1);
  CHECK(h.device.counters(1).drop_same_port == 1);
  h.send(0, 0, 1, 3, 1'515);
  CHECK(h.device.counters(0).drop_mtu_exceeded == 1);
  m = meta(0, 1, 3);
  m.tagged = true;
  h.receive(0, 0, m, 1'519);
  CHECK(h.device.counters(0).drop_mtu_exceeded == 2);
  h.receive(0, 0, m, 1'518);
  h.send(0, 0, 1, 3, 1'514);
  CHECK(h.device.counters(0).drop_mtu_exceeded == 2);
  CHECK(h.dropped() == 6);
  h.check_balance();
  h.run(kSecond);
  CHECK(h.at_port(1).size() == 2);
  h.check_drained();
}

TEST_CASE("soft switch: unknown destinations are flooded while learning, known ones are not") {
  SwitchParameters p = switch_parameters(4);
  p.learning = true;
  SwitchHarness h(p);
  h.send(0, 0, 2);
  h.run(kMillisecond);
  CHECK(h.at_port(0).empty());
  for (const uint16_t port : std::array<uint16_t, 3>{1, 2, 3}) CHECK(h.at_port(port).size() == 1);
  CHECK(h.device.counters(0).flood_copies == 2);
  h.departures.clear();
  h.send(kMillisecond, 2, 0);
  h.send(kMillisecond, 0, 2);
  h.run(2 * kMillisecond);
  CHECK(h.departures.size() == 2);
  CHECK(h.at_port(0).size() == 1);
  CHECK(h.at_port(2).size() == 1);
  h.check_drained();
}

TEST_CASE("soft switch: flooding without descriptors for the copies") {
  SwitchParameters p = switch_parameters(4);
  p.learning = true;
  SwitchHarness h(p, 2);
  h.send(0, 0, 2);
  CHECK(h.device.counters(0).drop_no_descriptor == 1);
  h.check_balance();
  h.run(kMillisecond);
  CHECK(h.departures.size() == 2);
  h.check_drained();
}

TEST_CASE("soft switch: without PFC drops are counted by reason and the sums hold at every moment") {
  SwitchParameters p = switch_parameters(4);
  p.pfc_priorities = 0;
  p.buffer.total = 100'000;
  SwitchHarness h(p);
  weir::Random random(1);
  for (Time t = 0; t < 3'000'000; t += 4'000) {
    for (uint16_t from = 0; from < 3; ++from) {
      h.send(t, from, random.next() % 8 == 0 ? static_cast<uint16_t>(random.next() % 4) : 3,
             static_cast<uint8_t>(random.next() % 8), static_cast<uint32_t>(60 + random.next() % 1'400));
    }
    h.collect();
    if (t % 100'000 == 0) h.check_balance();
  }
  uint64_t threshold = 0;
  for (uint16_t port = 0; port < 4; ++port) threshold += h.device.counters(port).drop_lossy_threshold;
  CHECK(threshold > 100);
  for (uint16_t port = 0; port < 4; ++port) CHECK(h.device.counters(port).tx_pfc_frames == 0);
  h.run(kSecond);
  h.check_drained();
}

TEST_CASE("soft switch: marks follow RED's probability at the queue length that each frame meets") {
  for (const bool dequeue : {false, true}) {
    CAPTURE(dequeue);
    SwitchParameters p = switch_parameters(2);
    p.mark_on_dequeue = dequeue;
    p.red.kmin = 10'000;
    p.red.kmax = 110'000;
    p.red.pmax = 0.5;
    SwitchHarness h(p);
    // The queue is filled to 120 frames and emptied, again and again.
    std::array<int, 121> marked{};
    constexpr int kRounds = 300;
    Time t = 0;
    for (int round = 0; round < kRounds; ++round) {
      h.departures.clear();
      for (int i = 0; i < 121; ++i) h.send(t, 0, 1);
      t += 200 * kFrameTime;
      h.run(t);
      REQUIRE(h.departures.size() == 121);
      for (size_t i = 0; i < 121; ++i) marked[i] += h.departures[i].ecn == 3 ? 1 : 0;
    }
    uint64_t total = 0;
    double low = 0;
    double middle = 0;
    double expected_low = 0;
    double expected_middle = 0;
    for (size_t i = 0; i < 121; ++i) {
      // The first goes on the link at once. Frame i finds i - 1 queued at enqueue; at dequeue it leaves 120 - i behind.
      const size_t queued = i == 0 ? 0 : dequeue ? 120 - i : i - 1;
      total += static_cast<uint64_t>(marked[i]);
      if (queued <= 10) CHECK(marked[i] == 0);
      if (queued > 110) CHECK(marked[i] == kRounds);
      const double probability = 0.5 * (static_cast<double>(queued) - 10) / 100;
      if (queued > 10 && queued <= 60) {
        low += marked[i];
        expected_low += kRounds * probability;
      }
      if (queued > 60 && queued <= 110) {
        middle += marked[i];
        expected_middle += kRounds * probability;
      }
    }
    CHECK(low == doctest::Approx(expected_low).epsilon(0.08));
    CHECK(middle == doctest::Approx(expected_middle).epsilon(0.04));
    CHECK(h.device.counters(1, 3).wred_ecn_marked_packets == total);
  }
}

TEST_CASE("soft switch: only ECN-capable frames of the chosen priorities are marked") {
  SwitchParameters p = switch_parameters(2);
  p.red.kmin = p.red.kmax = 0;
  SwitchHarness h(p);
  h.send(0, 0, 1, 3);
  h.send(0, 0, 1, 3);
  PacketMeta m = meta(0, 1, 3);
  for (const uint8_t ecn : std::array<uint8_t, 3>{0, 1, 3}) {
    m.ecn = ecn;
    h.receive(0, 0, m);
  }
  m = meta(0, 1, 0);
  h.receive(0, 0, m);
  h.receive(0, 0, m);
  h.run(kMillisecond);
  std::array<int, 8> ecn{-1, -1, -1, -1, -1, -1, -1, -1};
  for (const Departure& d : h.departures) ecn[d.psn] = d.ecn;
  // The first two met an empty queue.
  CHECK(ecn == std::array<int, 8>{-1, 2, 2, 0, 3, 3, 2, 2});
  CHECK(h.device.counters(1, 3).wred_ecn_marked_packets == 1);
  CHECK(h.device.counters(1, 0).wred_ecn_marked_packets == 0);
}

TEST_CASE("soft switch: the distribution of a queue's length over time") {
  SwitchHarness h(switch_parameters(2));
  h.wire.advance(1'000'000);
  h.device.statistics().reset_distributions();
  for (int i = 0; i < 4; ++i) h.send(1'000'000, 0, 1);  // one goes on the link, three wait
  h.run(1'000'000 + 10 * kFrameTime);
  const Histogram& d = h.device.statistics().distribution(1, 3);
  CHECK(d.total() == 10 * kFrameTime);
  CHECK(mean(d) == doctest::Approx((3'000 + 2'000 + 1'000) / 10.0));
  CHECK(d.max() == 3'000);
  CHECK(percentile(d, 0.7) == 0);
  CHECK(static_cast<double>(percentile(d, 0.75)) == doctest::Approx(1'000).epsilon(0.032));
  CHECK(static_cast<double>(percentile(d, 0.9)) == doctest::Approx(2'000).epsilon(0.032));
  CHECK(h.device.statistics().take_peak(1, 3) == 3'000);
  CHECK(h.device.statistics().take_peak(1, 3) == 0);
  h.device.statistics().reset_distributions();
  CHECK(h.device.statistics().distribution(1, 3).total() == 0);
}
