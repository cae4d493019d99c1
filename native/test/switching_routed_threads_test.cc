// A switch that routes on two threads: what one shard hears of a neighbour the other needs.
#include <array>
#include <atomic>
#include <thread>

#include "base/random.h"
#include "test/router_harness.h"

using namespace weir;
using namespace weir::test;
using C = SwitchPortCounters;

// Ports 0 and 1, a shard's each, with 60 hosts behind each that answer who asks for them. Every thread has a time of its own, at
// most kApart ahead of the other's.
TEST_CASE("router: shards on threads find each other's hosts, and lose no packet") {
  constexpr Time kApart = 50 * kMicrosecond;
  constexpr uint32_t kFrames = 8'000;
  RouterOf<2> bed(router_parameters(3), 512);
  std::array<std::atomic<bool>, 2> complete{};
  std::array<std::atomic<Time>, 2> clocks{};
  const auto answer_to = [](const NeighbourMessage& question) {
    std::vector<uint8_t> bytes(kNeighbourFrame);
    const LinkHeader link{.destination_mac = kRouterMac, .source_mac = kStation + question.target.bytes[3]};
    bytes.resize(build_neighbour_answer(bytes.data(), link, question.target, question.sender));
    return bytes;
  };
  const auto live = [&](uint16_t self) {
    WireSwitch& wire = *bed.wires[self];
    SoftSwitch& device = wire.device;
    PacketPool& pool = *bed.pools[self];
    Random random(self + 1u);
    Time now = kSecond;
    uint32_t received = 0;
    const auto take = [&](const std::vector<uint8_t>& bytes) {
      if (pool.available() == 0) return;
      const PacketId id = pool.allocate();
      pool[id] = Packet{};
      std::memcpy(pool.data(id), bytes.data(), bytes.size());
      pool[id].length = static_cast<uint32_t>(bytes.size());
      classify(pool.data(id), pool[id].length, pool[id].meta);
      device.receive(now, self, id);
    };
    while (!complete[0] || !complete[1]) {
      const Time limit = std::max<Time>(kSecond, clocks[1u - self]) + kApart;
      device.begin_turn();
      std::vector<std::vector<uint8_t>> answers;
      for (uint64_t i = random.next() % 8; received < kFrames && now < limit && i > 0; --i) {
        wire.advance(now += static_cast<Time>(random.next() % 2'000));
        const auto host = static_cast<uint8_t>(2 + random.next() % 60);
        const auto to = static_cast<uint8_t>(random.next() % 2);
        take(roce_frame(ip4(10, 0, static_cast<uint8_t>(self), 9), ip4(10, 0, to, host)));
        ++received;
      }
      const bool idles = received == kFrames || pool.available() == 0;
      now = std::max(now, std::min(limit, now + (idles ? kMicrosecond : 1)));
      wire.advance(now);
      clocks[self] = now;
      do {
        for (PacketId id = wire.transmit(self); id != kNoPacket; id = wire.transmit(self)) {
          NeighbourMessage message;
          if (read_neighbour_message(pool.data(id), pool[id].length, pool[id].meta, message))
            answers.push_back(answer_to(message));
          device.left(self, id);
          pool.free(id);
        }
      } while (device.set_unsent(self, 0));
      for (const auto& bytes : answers) take(bytes);
      device.end_turn();
      if (idles || now >= limit) std::this_thread::yield();
      if (received == kFrames && device.lent() == 0 && pool.available() == pool.size()) complete[self] = true;
    }
  };
  std::thread other(live, uint16_t{1});
  live(0);
  other.join();
  bed.now = std::max<Time>(clocks[0], clocks[1]);
  bed.settle();
  bed.check_balance();
  CHECK(bed.held() == 0);
  CHECK(bed.count(&C::routed_packets) > kFrames);
  // Each host is asked for by whoever needs it first, and then by nobody for a while.
  for (const uint32_t shard : {0u, 1u}) {
    uint32_t known = 0;
    for (const NeighbourTable::Entry& entry : bed.neighbours(shard).entries()) known += entry.known();
    CHECK(known == 2 * 60);
  }
}
