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
  CHECK(h.device.counters(1, 0).queue_packets + h.device.counters(1, 1).queue_packets == 122);  // and one is in flight
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

TEST_CASE("soft switch: a new rate of a queue holds at once for the frame that waits") {
  SwitchParameters p = switch_parameters(2);
  p.ports[1].priority_rates[3] = 1'000'000;
  const Time gap = 8'192'000;  // time of a frame at that rate
  SwitchHarness h(p);
  for (int i = 0; i < 3; ++i) h.send(gap, 0, 1);
  h.run(gap + kMillisecond);
  REQUIRE(h.at_port(1).size() == 2);  // the second is made up for
  Rate rate = 0;
  Time released = 0;
  SUBCASE("higher") {
    rate = 10'000'000;
    released = gap + kMillisecond + (gap - kMillisecond) / 10;
  }
  SUBCASE("lower") {
    rate = 500'000;
    released = gap + kMillisecond + (gap - kMillisecond) * 2;
  }
  SUBCASE("none") { released = gap + kMillisecond; }
  SUBCASE("the same") {
    rate = 1'000'000;
    released = 2 * gap;
  }
  p.ports[1].priority_rates[3] = rate;
  h.device.reconfigure(p);
  h.run(kSecond);
  REQUIRE(h.at_port(1).size() == 3);
  CHECK(h.at_port(1)[2].at == released + 8'192);
  h.check_drained();
}

TEST_CASE("soft switch: a limit set while frames wait holds from the next frame on") {
  SwitchParameters p = switch_parameters(2);
  SwitchHarness h(p);
  for (int i = 0; i < 10; ++i) h.send(0, 0, 1);
  h.run(20'000);  // two have left, one is on the link
  p.ports[1].priority_rates[3] = 1'000'000;
  h.device.reconfigure(p);
  h.run(2 * kSecond);
  const std::vector<Departure> left = h.at_port(1);
  REQUIRE(left.size() == 10);
  CHECK(left[2].at == 3 * 8'192);
  // The first under the limit starts where the link falls free; of the next gap so much has passed.
  CHECK(left[4].at - left[3].at == 8'192'000 - 3 * 8'192);
  for (size_t i = 5; i < left.size(); ++i) CHECK(left[i].at - left[i - 1].at == 8'192'000);
  h.check_drained();
}

TEST_CASE("soft switch: a new rate of a link holds from the next frame on") {
  SwitchParameters p = switch_parameters(2);
  SwitchHarness h(p);
  for (int i = 0; i < 4; ++i) h.send(0, 0, 1);
  h.run(10'000);
  p.ports[1].rate = k1G / 10;
  h.device.reconfigure(p);
  h.run(kSecond);
  const std::vector<Departure> left = h.at_port(1);
  REQUIRE(left.size() == 4);
  CHECK(left[1].at == 2 * 8'192);
  CHECK(left[2].at == 2 * 8'192 + 81'920);
  CHECK(left[3].at == 2 * 8'192 + 2 * 81'920);
}

TEST_CASE("soft switch: the same parameters again change nothing, to the nanosecond") {
  SwitchParameters p = switch_parameters(3);
  p.ports[0].rate = p.ports[1].rate = p.ports[2].rate = 999'999'937;
  p.ports[1].priority_rates[3] = 300'000'007;
  SwitchHarness once(p), often(p);
  for (int i = 0; i < 200; ++i) {
    const Time at = i * 4'099;
    for (SwitchHarness* h : {&once, &often}) {
      h->run(at);
      if (h == &often) h->device.reconfigure(p);
      h->send(at, 0, 1, static_cast<uint8_t>(3 - i % 3), static_cast<uint32_t>(100 + i * 7));
    }
  }
  for (SwitchHarness* h : {&once, &often}) h->run(kSecond);
  CHECK(once.departures == often.departures);
}
