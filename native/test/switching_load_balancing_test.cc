#include <doctest/doctest.h>

#include <array>
#include <map>
#include <vector>

#include "base/random.h"
#include "switching/load_balancing.h"

namespace weir::test {
namespace {

constexpr Time kGap = 100 * kMicrosecond;
const std::vector<uint16_t> kPorts{4, 7, 2, 9};

LoadBalancer balancer(LoadBalancing how, uint64_t seed = 1, uint64_t component = 0) {
  LoadBalancer made(seed, component);
  made.configure(how, kGap);
  return made;
}

PortLoad idle(uint16_t) { return {}; }

// The port that is taken. `load(port)`: what lies before a frame there.
template <class Load>
uint16_t choose(LoadBalancer& balancer, Time now, uint32_t flow, const std::vector<uint16_t>& ports, Load load) {
  return ports[balancer.choose(now, flow, ports.size(), [&](size_t way) { return load(ports[way]); })];
}

// Counts how often each port was taken, for `count` frames of flows that are numbered from 0.
std::map<uint16_t, int> taken(LoadBalancer& balancer, uint32_t count) {
  std::map<uint16_t, int> times;
  for (uint32_t i = 0; i < count; ++i) ++times[choose(balancer, 0, i, kPorts, idle)];
  return times;
}

// 1000 expected, with a standard deviation of 27.
void check_even(const std::map<uint16_t, int>& times) {
  for (const uint16_t port : kPorts) {
    CAPTURE(port);
    CHECK(times.at(port) > 880);
    CHECK(times.at(port) < 1'120);
  }
}

TEST_CASE("load balancing: ecmp is the hash of the flow with the switch's seed, modulo the ways") {
  const uint64_t hash_seed = Random(7, 3, 1).next();
  LoadBalancer a = balancer(LoadBalancing::ecmp, 7, 3);
  for (uint32_t flow = 0; flow < 100; ++flow) {
    const uint16_t expected = kPorts[Random::mix(flow ^ hash_seed) % 4];
    for (const Time now : {Time{0}, Time{99}, kSecond}) CHECK(choose(a, now, flow, kPorts, idle) == expected);
  }
}

TEST_CASE("load balancing: ecmp and spray are even, and switches and seeds choose apart from each other") {
  for (const LoadBalancing how : {LoadBalancing::ecmp, LoadBalancing::spray}) {
    LoadBalancer a = balancer(how), same = balancer(how), other = balancer(how, 2), next = balancer(how, 1, 1);
    check_even(taken(a, 4'000));
    taken(same, 4'000);
    int alike[3] = {};
    for (uint32_t flow = 0; flow < 4'000; ++flow) {
      const uint16_t port = choose(a, 0, flow, kPorts, idle);
      alike[0] += port == choose(same, 0, flow, kPorts, idle);
      alike[1] += port == choose(other, 0, flow, kPorts, idle);
      alike[2] += port == choose(next, 0, flow, kPorts, idle);
    }
    CHECK(alike[0] == 4'000);
    for (const int of : {alike[1], alike[2]}) {
      CHECK(of > 880);
      CHECK(of < 1'120);
    }
  }
}

TEST_CASE("load balancing: spray draws for each frame from the second stream of the switch") {
  Random draws(5, 8, 2);
  LoadBalancer a = balancer(LoadBalancing::spray, 5, 8);
  for (int i = 0; i < 50; ++i) CHECK(choose(a, i, 17, kPorts, idle) == kPorts[draws.next() % 4]);
}

TEST_CASE("load balancing: a flowlet keeps its way until a flow has been silent for longer than the gap") {
  Random draws(1, 0, 2);
  LoadBalancer a = balancer(LoadBalancing::flowlet);
  Time now = 0;
  for (int flowlet = 0; flowlet < 40; ++flowlet) {
    const uint16_t expected = kPorts[draws.next() % 4];
    // Longer in all than the gap, but never silent for longer.
    for (const Time pause : {Time{0}, Time{1}, kGap, kGap / 2, kGap}) {
      now += pause;
      CHECK(choose(a, now, 17, kPorts, idle) == expected);
    }
    now += kGap + 1;
  }
}

TEST_CASE("load balancing: flowlets of several flows are apart, and one chooses anew where its way is gone") {
  LoadBalancer a = balancer(LoadBalancing::flowlet);
  check_even(taken(a, 4'000));
  std::vector<uint16_t> before;
  for (uint32_t flow = 0; flow < 64; ++flow) before.push_back(choose(a, 1, flow, kPorts, idle));
  for (uint32_t flow = 0; flow < 64; ++flow) CHECK(choose(a, 2, flow, kPorts, idle) == before[flow]);
  // Two of four ways are left: a flow that was on one of the first two stays.
  const std::vector<uint16_t> left{4, 7};
  for (uint32_t flow = 0; flow < 64; ++flow) {
    const uint16_t port = choose(a, 3, flow, left, idle);
    CHECK((port == 4 || port == 7));
    if (before[flow] == 4 || before[flow] == 7) CHECK(port == before[flow]);
  }
}

TEST_CASE("load balancing: adaptive takes the shortest queue, then the link that falls free first, then any of those alike") {
  LoadBalancer a = balancer(LoadBalancing::adaptive);
  std::array<PortLoad, 10> loads{};
  const auto load = [&](uint16_t port) { return loads[port]; };
  const auto set = [&](PortLoad at4, PortLoad at7, PortLoad at2, PortLoad at9) {
    loads[4] = at4, loads[7] = at7, loads[2] = at2, loads[9] = at9;
  };
  set({3'000, 0}, {2'000, 90}, {2'001, 0}, {9'000, 0});
  CHECK(choose(a, 0, 1, kPorts, load) == 7);
  set({0, 80}, {0, 90}, {0, 79}, {1, 0});
  CHECK(choose(a, 0, 1, kPorts, load) == 2);
  set({500, 50}, {0, 70}, {0, 70}, {0, 71});
  std::map<uint16_t, int> times;
  for (uint32_t i = 0; i < 2'000; ++i) ++times[choose(a, 0, 1, kPorts, load)];
  CHECK(times.size() == 2);
  CHECK(times[7] > 880);  // 1000, with a standard deviation of 22
  CHECK(times[7] < 1'120);
  CHECK(times[7] + times[2] == 2'000);
  // All alike: each as often as any other, whatever its place.
  LoadBalancer even = balancer(LoadBalancing::adaptive);
  check_even(taken(even, 4'000));
}

}  // namespace
}  // namespace weir::test
