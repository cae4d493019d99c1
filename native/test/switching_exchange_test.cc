#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "switching/exchange.h"
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
  const auto next = [](ShardLink& link) {
    link.look();
    return link.next();
  };
  from.send(2, numbered(1));
  from.send(2, numbered(2));
  CHECK(next(to) == kNever);
  CHECK(!exchange.waiting(2));
  CHECK(from.flush({}) == 1u << 2);
  CHECK(from.flush({}) == 0);
  CHECK(exchange.waiting(2));
  CHECK(!exchange.waiting(1));
  CHECK(next(exchange.link(1)) == kNever);
  CHECK(next(to) == 1);
  CHECK(!exchange.waiting(2));  // it has been looked at
  CHECK(to.take().packet == 1);
  CHECK(to.next() == 2);
  CHECK(to.take().packet == 2);
  CHECK(to.next() == kNever);
}

TEST_CASE("exchange: messages of several shards come in the order of time, and at one time of their senders") {
  Exchange exchange({0, 1, 2, 3}, 4, kPackets);
  ShardLink& to = exchange.link(1);
  const std::vector<std::vector<Time>> sent{{3, 5, 5, 9}, {}, {1, 5, 6}, {5, 7}};
  for (uint32_t from = 0; from < 4; ++from) {
    for (const Time at : sent[from]) exchange.link(from).send(1, {.at = at, .packet = from});
    exchange.link(from).flush({});
  }
  std::vector<std::pair<Time, uint32_t>> taken;
  to.look();
  while (to.next() != kNever) {
    const Time at = to.next();
    const ShardMessage message = to.take();
    CHECK(message.at == at);
    taken.emplace_back(at, message.packet);
  }
  CHECK(taken == std::vector<std::pair<Time, uint32_t>>{{1, 2}, {3, 0}, {5, 0}, {5, 0}, {5, 2}, {5, 3}, {6, 2}, {7, 3}, {9, 0}});
}

TEST_CASE("exchange: news are refused before they could take the room of frames") {
  Exchange exchange({0, 1}, 2, kPackets);
  ShardLink& from = exchange.link(0);
  ShardLink& to = exchange.link(1);
  uint32_t told = 0;
  while (from.tell(numbered(told))) ++told;
  CHECK(told == 1'024);
  for (uint32_t i = 0; i < 3 * kPackets; ++i) from.send(1, numbered(told + i));
  from.flush({});
  to.look();
  for (uint32_t i = 0; i < told + 3 * kPackets; ++i) {
    REQUIRE(to.next() == i);
    CHECK(to.take().packet == i);
  }
  CHECK(to.next() == kNever);
  CHECK(!from.tell(numbered(0)));
  to.flush({});  // now the writer knows what was taken
  CHECK(from.tell(numbered(0)));
}

TEST_CASE("exchange: each shard sees what the others occupy together") {
  Exchange exchange({0, 1, 2}, 3, kPackets);
  exchange.link(0).flush({100, 1});
  exchange.link(1).flush({20, 2});
  exchange.link(2).flush({3, 4});
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
    WireSwitch& wire = *h.wires[self];
    SoftSwitch& device = wire.device;
    PacketPool& pool = *h.pools[self];
    Random random(self + 1);
    Time now = 1;
    uint32_t received = 0, sent = 0;
    while (!complete[0] || !complete[1]) {
      const Time limit = clocks[1 - self] + kApart;
      // The number of drops depends on how the threads get their turns.
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
        wire.advance(now += static_cast<Time>(random.next() % 500));
        device.receive(now, in, id);
      }
      const bool idles = !sends || pool.available() == 0;
      now = std::max(now, std::min(limit, now + (idles ? kMicrosecond : 1)));
      wire.advance(now);
      clocks[self] = now;
      for (uint16_t port = 0; port < kPorts; ++port) {
        do {
          for (PacketId id = wire.transmit(port); id != kNoPacket; id = wire.transmit(port)) {
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
