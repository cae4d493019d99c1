#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "test/switch_harness.h"

using namespace weir;
using namespace weir::test;

TEST_CASE("soft switch: a limited queue keeps its rate and leaves the rest of the link to others") {
  SwitchParameters p = switch_parameters(2);
  p.ports[1].priority_rates[0] = 250'000'000;
  SwitchHarness h(p);
  for (int i = 0; i < 300; ++i) {
    h.send(0, 0, 1, 0);
    h.send(0, 0, 1, 1);
  }
  // 1 ms of a 1 Gb/s link: 122 frames of 8192 ns. A quarter of them may be of priority 0, though it has the same weight.
  h.run(kMillisecond);
  CHECK(h.device.counters(1, 0).queue_packets == doctest::Approx(31).epsilon(0.04));
  CHECK(h.device.counters(1, 0).queue_packets + h.device.counters(1, 1).queue_packets == 123);  // one of them in flight
  h.run(kSecond);
  h.check_drained();
}

TEST_CASE("soft switch: on an unshaped port a limited queue is spaced, exactly") {
  SwitchParameters p = switch_parameters(2);
  p.ports[1].rate = 0;
  p.ports[1].priority_rates[0] = k1G / 10;
  SwitchHarness h(p);
  for (int i = 0; i < 5; ++i) h.send(kMillisecond, 0, 1, 0);
  h.send(kMillisecond, 0, 1, 1);
  h.collect();
  h.run(kSecond);
  const std::vector<Departure> left = h.at_port(1);
  // After a rest two may go at once (one made up for), then one every 8192 bits / 0.1 Gb/s. The other priority goes at once.
  const std::vector<std::pair<uint32_t, Time>> expected = {{1, 0}, {2, 0}, {6, 0}, {3, 81'920}, {4, 163'840}, {5, 245'760}};
  REQUIRE(left.size() == expected.size());
  for (size_t i = 0; i < left.size(); ++i) {
    CHECK(left[i].psn == expected[i].first);
    CHECK(left[i].at == kMillisecond + expected[i].second);
  }
  h.check_drained();
}

TEST_CASE("soft switch: a queue drops what its own limit does not let in, and says so") {
  SwitchParameters p = switch_parameters(2);
  p.ports[1].queue_limits[0] = 3'500;
  SwitchHarness h(p);
  for (int i = 0; i < 10; ++i) h.send(0, 0, 1, 0);
  for (int i = 0; i < 10; ++i) h.send(0, 0, 1, 1);
  // The first is on the link, three fit, six do not; the other priority is not limited.
  CHECK(h.device.counters(0).drop_queue_limit == 6);
  h.run(kSecond);
  CHECK(h.device.counters(1, 0).queue_packets == 4);
  CHECK(h.device.counters(1, 1).queue_packets == 10);
  h.check_balance();
  h.check_drained();
}
