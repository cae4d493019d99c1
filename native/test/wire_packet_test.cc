#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "wire/packet.h"

using namespace weir;

TEST_CASE("packet: reset() makes of any descriptor a new one") {
  static constexpr Packet fresh{};
  Packet packet;
  std::memset(static_cast<void*>(&packet), 0xa5, sizeof packet);
  packet.reset();
  CHECK(packet.next == kNoPacket);
  CHECK(std::memcmp(&packet, &fresh, sizeof packet) == 0);
}

TEST_CASE("packet: a pool that grows keeps what is in use, hands out what was freed first, and then has more") {
  constexpr uint32_t kFew = 1'000, kMore = 70'000;
  PacketPool pool(kFew, kHeaderStride);
  std::vector<PacketId> held;
  for (uint32_t i = 0; i < kFew; ++i) {
    held.push_back(pool.allocate());
    pool[held[i]].length = 64 + i;
    std::memset(pool.data(held[i]), static_cast<int>(i % 251), kHeaderStride);
  }
  CHECK(pool.allocate() == kNoPacket);
  pool.free(held[17]);
  pool.free(held[3]);
  for (const uint32_t count : {2 * kFew, kMore}) {
    const uint32_t available = pool.available() + count - pool.size();
    pool.grow(count);
    CHECK(pool.size() == count);
    CHECK(pool.available() == available);
  }
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
  CHECK(pool.available() == pool.size());
}
