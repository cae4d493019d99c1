#include <doctest/doctest.h>

#include <cstring>

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
