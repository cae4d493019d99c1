#include <doctest/doctest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "test/shard_harness.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr Time kFrameTime = 8'192;  // time of 1000 bytes at 1 Gb/s

std::map<uint16_t, std::vector<Departure>> by_port(const std::vector<Departure>& departures) {
  std::map<uint16_t, std::vector<Departure>> sorted;
  for (const Departure& d : departures) sorted[d.port].push_back(d);
  return sorted;
}

template <class Counters>
void check_same(const Counters& one, const Counters& other) {
  for (int i = 0; i < Counters::kCount; ++i) {
    const std::string name = Counters::kDescriptions[i].name;
    CAPTURE(name);
    // A frame that its egress refuses was charged to its ingress until the word of it came back.
    if (name != "pg_watermark_bytes") CHECK(one.words()[i] == other.words()[i]);
  }
}

struct Frame {
  Time at;
  uint16_t from;
  uint16_t to;
  uint8_t priority;
  uint32_t length;
};
// Bursts from all ports to few. `priorities`: how many, 3 and those below it.
std::vector<Frame> traffic(uint64_t seed, size_t count, uint16_t ports, int priorities) {
  Random random(seed);
  const auto below = [&](uint64_t limit) { return random.next() % limit; };
  std::vector<Frame> frames;
  Time at = 0;
  while (frames.size() < count) {
    at += static_cast<Time>(1 + (below(100) == 0 ? below(400'000) : below(3'000)));
    const auto from = static_cast<uint16_t>(below(ports));
    const auto to = static_cast<uint16_t>(below(3) == 0 ? below(ports) : static_cast<uint64_t>(at) / 2'000'000 % ports);
    const auto priority = static_cast<uint8_t>(3 - below(static_cast<uint64_t>(priorities)));
    frames.push_back({at, from, to, priority, static_cast<uint32_t>(60 + below(1'440))});
  }
  return frames;
}

SwitchParameters parameters() {
  SwitchParameters p = switch_parameters(6);
  p.red.kmin = p.red.kmax = 6'000;  // no draws: a shard has a random stream of its own
  p.ports[2].queue_limits[1] = 3'000;
  p.ports[1].priority_rates[3] = 400'000'000;
  p.scheduler.weights = {1, 2, 3, 4, 1, 1, 1, 1};
  p.buffer = {.total = 700'000, .headroom = 9'000, .beta = 2, .lossy_alpha = 0.2};
  return p;
}

}  // namespace

TEST_CASE("shards: without PFC what leaves, when, and what is counted is as in one switch") {
  SwitchParameters p = parameters();
  p.pfc_priorities = 0;
  p.buffer.total = 150'000;
  for (const uint32_t count : {2u, 3u}) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      CAPTURE(count);
      CAPTURE(seed);
      SwitchHarness whole(p);
      ShardHarness parts(p, count);
      for (const Frame& f : traffic(seed, 4'000, 6, 4)) {
        whole.run(f.at);
        parts.run(f.at);
        whole.send(f.at, f.from, f.to, f.priority, f.length);
        whole.collect();
        parts.send(f.at, f.from, f.to, f.priority, f.length);
      }
      parts.check_balance();
      whole.run(kSecond);
      parts.run(kSecond);
      CHECK(by_port(whole.departures) == by_port(parts.departures));
      uint64_t marks = 0;
      for (uint16_t port = 0; port < 6; ++port) {
        CAPTURE(port);
        check_same(whole.device.counters(port), parts.of(port).counters(port));
        for (int priority = 0; priority < kPriorities; ++priority) {
          CAPTURE(priority);
          check_same(whole.device.counters(port, priority), parts.of(port).counters(port, priority));
          marks += parts.of(port).counters(port, priority).wred_ecn_marked_packets;
          const Histogram& one = whole.device.statistics().distribution(port, priority);
          const Histogram& other = parts.of(port).statistics().distribution(port, priority);
          CHECK(one.weighted_sum() == other.weighted_sum());
          CHECK(one.total() == other.total());
        }
      }
      CHECK(marks > 0);
      CHECK(parts.sum(&SwitchPortCounters::drop_lossy_threshold) > 50);
      CHECK(parts.sum(&SwitchPortCounters::drop_queue_limit) > 5);
      parts.check_drained();
    }
  }
}

TEST_CASE("shards: an incast of ports of all shards loses nothing, and its peers are stopped and resumed") {
  for (const uint32_t count : {2u, 3u}) {
    CAPTURE(count);
    SwitchParameters p = parameters();
    p.buffer = {.total = 500'000, .headroom = 6'000, .beta = 0.5};
    p.ports[1].priority_rates[3] = 0;
    ShardHarness h(p, count);
    // Ports 0 and 2 to 5 send to port 1 as fast as they may: a peer that is stopped stops, once the PFC frame has reached it.
    std::array<uint8_t, 6> stopped{};
    size_t seen = 0;
    uint64_t sent = 0;
    for (Time at = kFrameTime; at < 20 * kMillisecond; at += kFrameTime) {
      h.run(at);
      for (; seen < h.departures.size(); ++seen) {
        const Departure& d = h.departures[seen];
        if (d.kind == FrameKind::pfc && (d.pfc_enable >> 3 & 1) != 0) stopped[d.port] = d.pfc_xoff >> 3 & 1;
      }
      for (const uint16_t from : {0, 2, 3, 4, 5}) {
        if (stopped[from] != 0) continue;
        h.send(at, from, 1);
        ++sent;
      }
    }
    h.check_balance();
    for (const uint16_t from : {0, 2, 3, 4, 5}) {
      CAPTURE(from);
      CHECK(h.of(from).counters(from, 3).pfc_tx_transitions > 3);
      CHECK(h.of(from).counters(from, 3).pg_xoff_room_watermark_bytes <= 6'000);
    }
    h.run(kSecond);
    CHECK(h.dropped() == 0);
    CHECK(h.of(1).counters(1).tx_packets == sent);
    CHECK(h.of(1).counters(1, 3).queue_watermark_bytes > 50'000);
    for (uint16_t port = 0; port < 6; ++port) CHECK(h.of(port).pauses().pausing_mask(port) == 0);
    h.check_drained();
    // The link never stood still: 20 ms, and what was queued then.
    CHECK(sent * kFrameTime > 20 * kMillisecond);
    const std::vector<Departure> left = h.at_port(1);
    for (size_t i = 1; i < left.size(); ++i) REQUIRE(left[i].at == left[i - 1].at + kFrameTime);
  }
}

TEST_CASE("shards: a peer is resumed when another shard's frames make room") {
  SwitchParameters p = parameters();
  p.ports[1].priority_rates[3] = 0;
  p.buffer = {.total = 400'000, .headroom = 6'000, .beta = 2, .xon_offset = 2'000};
  ShardHarness h(p, 2);
  // Frames that come by port 3, of shard 1, are kept at port 1, and just not too many; until shard 0 has as many bytes more.
  std::array<uint16_t, kPriorities> pause{};
  pause.fill(65'535);
  h.of(0).pauses().receive_pfc(0, 0, 1 << 3, pause);
  h.of(1).pauses().receive_pfc(0, 1, 1 << 3, pause);
  for (int i = 0; i < 15; ++i) h.send(1, 3, 1);
  for (int i = 0; i < 33; ++i) h.send(2, i % 2 == 0 ? 2 : 4, 0);
  CHECK(!h.of(3).pauses().stopped(3, 3));
  h.send(3, 3, 1);
  CHECK(h.of(3).pauses().stopped(3, 3));
  CHECK(h.of(3).buffer().headroom_bytes(3, 3) == 0);
  CHECK(h.wires[3 % h.wires.size()]->next_deadline() <= h.of(3).now() + 20 * kMicrosecond);  // it looks again by itself
  h.run(kMillisecond);
  CHECK(h.of(3).pauses().stopped(3, 3));
  // Frames of shard 0 go, of which shard 1 is not told; its own stay.
  h.of(0).pauses().receive_pfc(kMillisecond, 0, 1 << 3, {});
  h.run(2 * kMillisecond);
  CHECK(h.of(0).held() == 0);
  CHECK(h.of(1).held() == 16);
  CHECK(!h.of(3).pauses().stopped(3, 3));
  h.run(kSecond);
  h.check_drained();
}

TEST_CASE("shards: what one learns, all know; unknown and group addresses reach the ports of all") {
  SwitchParameters p = switch_parameters(6);
  p.learning = true;
  p.ageing = 8 * kSecond;
  ShardHarness h(p, 3);
  h.send(0, 0, 4);  // nobody knows host 4
  h.run(kMillisecond);
  CHECK(h.sum(&SwitchPortCounters::flood_copies) == 4);
  for (uint16_t port = 1; port < 6; ++port) CHECK(h.at_port(port).size() == 1);
  h.departures.clear();
  h.send(kMillisecond, 4, 0);  // but all know host 0
  h.send(kMillisecond, 5, 4);
  h.send(kMillisecond, 2, 5);
  h.run(2 * kMillisecond);
  CHECK(h.departures.size() == 3);
  PacketMeta m = meta(1, 0, 3);
  m.destination_mac = 0xffffffffffff;
  h.departures.clear();
  h.receive(3 * kMillisecond, 1, m);
  h.run(4 * kMillisecond);
  CHECK(h.departures.size() == 5);
  CHECK(h.at_port(1).empty());

  // Host 4 speaks on, and host 0 does not: the others are told often enough that they keep the one, and forget the other.
  for (Time at = 0; at < 20 * kSecond; at += kSecond / 4) h.send(4 * kMillisecond + at, 4, 5);
  h.run(20 * kSecond);
  const auto knows = [&](SoftSwitch& shard, uint16_t host) {
    return shard.forwarding().lookup(shard.now(), meta(3, host, 3), [](auto ports) { return ports[0]; });
  };
  for (const auto& shard : h.shards) {
    CHECK(knows(*shard, 4) == 4);
    CHECK(knows(*shard, 0) == Forwarding::kUnknown);
  }
  // It moves from a port of one shard to a port of another.
  h.receive(20 * kSecond, 3, meta(4, 5, 3));
  for (const auto& shard : h.shards) CHECK(knows(*shard, 4) == 3);
  h.run(21 * kSecond);
  for (const auto& shard : h.shards) CHECK(knows(*shard, 4) == 3);
  h.check_drained();
}

TEST_CASE("shards: a super-frame crosses whole, and is counted where it came in") {
  SwitchParameters p = switch_parameters(2);
  for (SwitchParameters::Port& port : p.ports) {
    port.rate = 0;
    port.offloads = true;
  }
  ShardHarness h(p, 2);
  const PacketId id = h.pools[0]->allocate();
  Packet& packet = (*h.pools[0])[id];
  packet.reset();
  packet.meta = meta(0, 1, 0);
  packet.length = 30'000;
  packet.offload = {.segment_size = 1'446, .header_length = 54, .gso = Gso::tcp4, .needs_checksum = true};
  h.of(0).receive(0, 0, id);
  h.of(0).end_turn();
  CHECK(h.of(0).lent() == 21);
  CHECK(h.of(0).held() == 0);
  CHECK(h.of(0).buffer().occupied() == 30'000 + 20 * 54);
  CHECK(h.of(0).counters(0).gso_passed == 0);
  h.settle(1);
  CHECK(h.of(0).counters(0).gso_passed == 1);
  CHECK(h.of(0).counters(0, 0).pg_packets == 21);
  REQUIRE(h.at_port(1).size() == 1);
  CHECK(h.at_port(1)[0].length == 30'000);
  h.check_drained();
}
