#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "wire/packet_pool.h"

using namespace weir;

TEST_CASE("packet: reset() makes of any descriptor a new one") {
  static constexpr Packet fresh{};
  Packet packet;
  std::memset(static_cast<void*>(&packet), 0xa5, sizeof packet);
  packet.reset();
  CHECK(packet.next == kNoPacket);
  CHECK(std::memcmp(&packet, &fresh, sizeof packet) == 0);
}

TEST_CASE(
    "packet: pools of a memory that grows keep what is in use, hand out what was freed first, and then what they are given") {
  constexpr uint32_t kFew = 1'000, kMore = 70'000;
  auto memory = std::make_unique<PacketMemory>(PacketShape{kFew, kHeaderStride});
  PacketPool pool(*memory, PacketPool::Supplied{}), other(*memory, PacketPool::Supplied{});
  CHECK(pool.allocate() == kNoPacket);
  pool.supply(0, kFew);
  CHECK(pool.available() == kFew);
  std::vector<PacketId> held;
  for (uint32_t i = 0; i < kFew; ++i) {
    held.push_back(pool.allocate());
    pool[held[i]].length = 64 + i;
    std::memset(pool.data(held[i]), static_cast<int>(i % 251), kHeaderStride);
  }
  CHECK(pool.allocate() == kNoPacket);
  pool.free(held[17]);
  pool.free(held[3]);
  other.free(held[5]);
  CHECK(other.allocate() == held[5]);
  for (const uint32_t count : {2 * kFew, kMore}) {
    auto larger = std::make_unique<PacketMemory>(PacketShape{count, kHeaderStride});
    larger->take_over(*memory, kFew);
    pool.move_to(*larger);
    other.move_to(*larger);
    memory = std::move(larger);
  }
  CHECK(pool.available() == 2);
  pool.supply(kFew, kMore - kFew);
  std::vector<bool> used(kMore, true);
  pool.unmark_free(used);
  CHECK(std::count(used.begin(), used.end(), true) == kFew - 2);
  for (uint32_t i = 0; i < kFew; ++i) {
    if (i == 3 || i == 17) continue;
    CHECK(pool[held[i]].length == 64 + i);
    const uint8_t* const bytes = pool.data(held[i]);
    CHECK(std::count(bytes, bytes + kHeaderStride, static_cast<uint8_t>(i % 251)) == kHeaderStride);
  }
  CHECK(pool.allocate() == held[3]);
  CHECK(pool.allocate() == held[17]);
  for (uint32_t i = kFew; i < kMore; ++i) {
    const PacketId id = pool.allocate();
    REQUIRE(id == i);
    pool.data(id)[kHeaderStride - 1] = 1;
  }
  CHECK(pool.allocate() == kNoPacket);
  for (uint32_t i = 0; i < kMore; ++i) pool.free(i);
  CHECK(pool.available() == kMore);
}

TEST_CASE("packet: what a pool has been supplied with is handed out, whether it follows what it had or not") {
  PacketMemory memory({100, kHeaderStride});
  PacketPool pool(memory, PacketPool::Supplied{});
  pool.supply(10, 5);
  CHECK(pool.allocate() == 10);
  pool.supply(15, 5);
  CHECK(pool.available() == 9);
  for (PacketId id = 11; id < 17; ++id) CHECK(pool.allocate() == id);
  pool.supply(50, 2);
  std::vector<PacketId> rest;
  for (PacketId id = pool.allocate(); id != kNoPacket; id = pool.allocate()) rest.push_back(id);
  CHECK(rest == std::vector<PacketId>{19, 18, 17, 50, 51});
}
