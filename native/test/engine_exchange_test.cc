#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "base/random.h"
#include "engine/exchange.h"
#include "test/shard_harness.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint32_t kPackets = 100;

ShardMessage numbered(uint32_t number) { return {.at = number, .packet = number}; }

}  // namespace

TEST_CASE("exchange: what is sent is seen after flush(), in order, by the shard it is for") {
  Exchange exchange({0, 1, 2}, 3, kPackets);
  ShardLink& from = exchange.link(0);
  ShardLink& to = exchange.link(2);
  from.send(2, numbered(1));
  from.send(2, numbered(2));
  CHECK(to.front(0) == nullptr);
  CHECK(!exchange.waiting(2));
  CHECK(from.flush() == 1u << 2);
  CHECK(from.flush() == 0);
  CHECK(exchange.waiting(2));
  CHECK(!exchange.waiting(1));
  CHECK(exchange.link(1).front(0) == nullptr);
  REQUIRE(to.front(0) != nullptr);
  CHECK(to.front(0)->packet == 1);
  CHECK(!exchange.waiting(2));  // it has been looked at
  to.pop(0);
  CHECK(to.front(0)->packet == 2);
  to.pop(0);
  CHECK(to.front(0) == nullptr);
  CHECK(to.front(1) == nullptr);
}

TEST_CASE("exchange: news are refused before they could take the room of frames") {
  Exchange exchange({0, 1}, 2, kPackets);
  ShardLink& from = exchange.link(0);
  ShardLink& to = exchange.link(1);
  uint32_t told = 0;
  while (from.tell(1, numbered(told))) ++told;
  CHECK(told == 1'024);
  CHECK(exchange.untold(0) == 1);
  CHECK(exchange.untold(1) == 0);
  for (uint32_t i = 0; i < 3 * kPackets; ++i) from.send(1, numbered(told + i));
  from.flush();
  for (uint32_t i = 0; i < told + 3 * kPackets; ++i) {
    REQUIRE(to.front(0) != nullptr);
    CHECK(to.front(0)->packet == i);
    to.pop(0);
  }
  CHECK(to.front(0) == nullptr);
  CHECK(!from.tell(1, numbered(0)));
  to.flush();  // now the writer knows what was taken
  CHECK(from.tell(1, numbered(0)));
}

TEST_CASE("exchange: each shard sees what the others occupy together") {
  Exchange exchange({0, 1, 2}, 3, kPackets);
  exchange.link(0).publish({100, 1});
  exchange.link(1).publish({20, 2});
  exchange.link(2).publish({3, 4});
  CHECK(exchange.link(0).others().occupied == 23);
  CHECK(exchange.link(1).others().occupied == 103);
  CHECK(exchange.link(2).others().occupied == 120);
  CHECK(exchange.link(2).others().in_headroom == 3);
}

// Every thread has a time of its own, at most kApart ahead of the other's, so that messages come early and late. Ports with and
// without a rate; PFC, thresholds, flooding and learning at work; a pool that runs empty now and then.
TEST_CASE("exchange: shards on threads lose no frame, byte or packet") {
  constexpr uint32_t kShards = 2;
  constexpr uint16_t kPorts = 6;
  constexpr Time kApart = 50 * kMicrosecond;
  SwitchParameters p = switch_parameters(kPorts);
  for (uint16_t i = 0; i < kPorts; ++i) p.ports[i].rate = i < 4 ? 10 * k1G : 0;
  p.learning = true;
  p.ageing = 200 * kMicrosecond;
  p.pfc_priorities = 1 << 3;
  p.buffer = {.total = 400'000, .headroom = 4'000, .beta = 1, .lossy_alpha = 0.3};
  ShardHarness h(p, kShards, 120);
  std::array<std::atomic<bool>, kShards> complete{};
  std::array<std::atomic<Time>, kShards> clocks{};
  std::array<uint64_t, kShards> starved{};
  const auto live = [&](uint32_t self) {
    SoftSwitch& device = *h.shards[self];
    PacketPool& pool = *h.pools[self];
    Random random(self + 1);
    Time now = 1;
    uint32_t received = 0, sent = 0;
    while (!complete[0] || !complete[1]) {
      const Time limit = clocks[1 - self] + kApart;
      // How much is dropped depends on how the threads get their turns.
      const bool sends = received < 40'000 || sent <= 25'000;
      device.begin_turn();
      for (uint64_t i = random.next() % 16; sends && now < limit && i > 0; --i) {
        const PacketId id = pool.allocate();
        if (id == kNoPacket) {
          ++starved[self];
          break;
        }
        ++received;
        const auto in = static_cast<uint16_t>(self + kShards * (random.next() % (kPorts / kShards)));
        const auto out = static_cast<uint16_t>(random.next() % kPorts);
        pool[id].reset();
        pool[id].meta = meta(in, out, static_cast<uint8_t>(random.next() % 4));
        if (random.next() % 16 == 0) pool[id].meta.destination_mac = 0xffffffffffff;
        pool[id].length = static_cast<uint32_t>(60 + random.next() % 1'440);
        device.receive(now += static_cast<Time>(random.next() % 500), in, id);
      }
      const bool idles = !sends || pool.available() == 0;
      now = std::max(now, std::min(limit, now + (idles ? kMicrosecond : 1)));
      device.advance(now);
      clocks[self] = now;
      for (uint16_t port = 0; port < kPorts; ++port) {
        do {
          for (PacketId id = device.transmit(port); id != kNoPacket; id = device.transmit(port)) {
            device.left(port, id);
            sent += pool[id].meta.kind == FrameKind::pfc ? 0 : 1;
            pool.free(id);
          }
        } while (device.set_unsent(port, 0));
      }
      device.end_turn();
      if (idles || now >= limit) std::this_thread::yield();
      if (!sends && device.lent() == 0 && pool.available() == pool.size()) complete[self] = true;
    }
  };
  std::thread other(live, 1);
  live(0);
  other.join();
  h.settle(h.shards[0]->now() + h.shards[1]->now());
  h.check_drained();
  CHECK(h.sum(&SwitchPortCounters::rx_packets) > 50'000);
  CHECK(h.sum(&SwitchPortCounters::tx_packets) > 50'000);
  CHECK(h.sum(&SwitchPortCounters::flood_copies) > 10'000);
  CHECK(h.sum(&SwitchPortCounters::tx_pfc_frames) > 10);
  CHECK(starved[0] + starved[1] + h.sum(&SwitchPortCounters::drop_no_descriptor) > 0);
}
