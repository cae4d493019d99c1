#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "switching/forwarding.h"

using weir::Forwarding;
using weir::kSecond;
using weir::PacketMeta;
using weir::Time;

namespace {

constexpr uint64_t kHost = 0x025745000000;

PacketMeta frame(uint64_t source, uint64_t destination, uint32_t hash = 0, int vlan = -1) {
  PacketMeta meta;
  meta.source_mac = source;
  meta.destination_mac = destination;
  meta.flow_hash = hash;
  meta.tagged = vlan >= 0;
  meta.vlan_tci = vlan >= 0 ? static_cast<uint16_t>(0x6000 | vlan) : uint16_t{0};
  return meta;
}

}  // namespace

TEST_CASE("forwarding: a static group spreads flows evenly, each flow keeps its port, and the seed decides") {
  Forwarding a(64, false, 0, 1);
  Forwarding b(64, false, 0, 2);
  const std::vector<uint16_t> ports{4, 7, 2, 9};
  REQUIRE(a.add_static(kHost + 1, ports));
  REQUIRE(b.add_static(kHost + 1, ports));
  std::array<int, 16> used{};
  int same = 0;
  for (uint32_t flow = 0; flow < 4'000; ++flow) {
    const PacketMeta meta = frame(kHost + 2, kHost + 1, flow);  // hashes next to each other
    const int port = a.lookup(0, meta);
    REQUIRE(port == a.lookup(99, meta));
    ++used[static_cast<size_t>(port)];
    if (port == b.lookup(0, meta)) ++same;
  }
  for (const uint16_t port : ports) {
    CHECK(used[port] > 880);  // 1000 +- 4 sigma
    CHECK(used[port] < 1'120);
  }
  CHECK(same > 880);  // independent of the other switch's choice: a quarter agree
  CHECK(same < 1'120);
}

TEST_CASE("forwarding: static entries hold in every VLAN, do not age, and unknown or group addresses have no port") {
  Forwarding table(16, false, 0, 1);
  const std::vector<uint16_t> port{5};
  REQUIRE(table.add_static(kHost + 1, port));
  CHECK_FALSE(table.add_static(kHost + 2, {}));
  CHECK(table.lookup(1'000 * kSecond, frame(kHost, kHost + 1, 0, 17)) == 5);
  CHECK(table.lookup(0, frame(kHost, kHost + 1)) == 5);
  CHECK(table.lookup(0, frame(kHost, kHost + 2)) == Forwarding::kUnknown);
  CHECK(table.lookup(0, frame(kHost, 0xffffffffffff)) == Forwarding::kUnknown);
  CHECK(table.lookup(0, frame(kHost, 0x01005e000001)) == Forwarding::kUnknown);
}

TEST_CASE("forwarding: a pin decides for one source, the group for the others") {
  Forwarding table(64, false, 0, 1);
  const std::vector<uint16_t> ports{1, 2};
  REQUIRE(table.add_static(kHost + 1, ports));
  REQUIRE(table.pin(kHost + 7, kHost + 1, 9));
  int others = 0;
  for (uint32_t flow = 0; flow < 100; ++flow) {
    CHECK(table.lookup(0, frame(kHost + 7, kHost + 1, flow)) == 9);
    others += table.lookup(0, frame(kHost + 8, kHost + 1, flow)) == 9 ? 1 : 0;
    others += table.lookup(0, frame(kHost + 1, kHost + 7, flow)) == 9 ? 1 : 0;  // not the other way round
  }
  CHECK(others == 0);
}

TEST_CASE("forwarding: learning, moving, ageing and VLANs") {
  const Time ageing = 300 * kSecond;
  Forwarding table(64, true, ageing, 1);
  CHECK(table.lookup(0, frame(kHost, kHost + 1)) == Forwarding::kUnknown);
  REQUIRE(table.learn(10, frame(kHost + 1, kHost), 3));
  CHECK(table.lookup(10, frame(kHost, kHost + 1)) == 3);
  CHECK(table.lookup(10 + ageing - 1, frame(kHost, kHost + 1)) == 3);
  CHECK(table.lookup(10 + ageing, frame(kHost, kHost + 1)) == Forwarding::kUnknown);
  REQUIRE(table.learn(20, frame(kHost + 1, kHost), 4));  // the station moved; its age starts again
  CHECK(table.lookup(10 + ageing, frame(kHost, kHost + 1)) == 4);
  // Another VLAN is another network; priority bits are not part of the VLAN.
  REQUIRE(table.learn(20, frame(kHost + 1, kHost, 0, 100), 6));
  CHECK(table.lookup(21, frame(kHost, kHost + 1, 0, 100)) == 6);
  CHECK(table.lookup(21, frame(kHost, kHost + 1, 0, 101)) == Forwarding::kUnknown);
  CHECK(table.lookup(21, frame(kHost, kHost + 1)) == 4);
  // Group addresses are never learned.
  REQUIRE(table.learn(30, frame(0x010000000001, kHost), 2));
  CHECK(table.lookup(31, frame(kHost, 0x010000000001)) == Forwarding::kUnknown);
}

TEST_CASE("forwarding: a static entry wins over a learned one") {
  Forwarding table(64, true, kSecond, 1);
  const std::vector<uint16_t> port{5};
  REQUIRE(table.add_static(kHost + 1, port));
  REQUIRE(table.learn(1, frame(kHost + 1, kHost), 2));  // someone claims the address
  CHECK(table.lookup(2, frame(kHost, kHost + 1)) == 5);
}

TEST_CASE("forwarding: hostile addresses fill the table, no more; what was there stays; room comes back with age") {
  Forwarding table(256, true, kSecond, 1);
  const std::vector<uint16_t> port{5};
  REQUIRE(table.add_static(kHost + 1, port));
  REQUIRE(table.learn(1, frame(kHost + 2, kHost), 6));
  weir::Random random(1);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t mac = random.next() & 0xfeff'ffff'ffff;
    if (!table.learn(2, frame(mac, kHost, 0, static_cast<int>(random.next() & 0xfff)), 7)) ++refused;
  }
  CHECK(refused >= 20'000 - 256);
  CHECK(table.entries().size() == 256);
  CHECK(table.lookup(3, frame(kHost, kHost + 1)) == 5);
  CHECK(table.lookup(3, frame(kHost, kHost + 2)) == 6);
  REQUIRE(table.learn(3, frame(kHost + 2, kHost), 8));  // who is in may move even when it is full
  CHECK(table.lookup(3, frame(kHost, kHost + 2)) == 8);
  int learned = 0;
  for (uint64_t i = 0; i < 100; ++i) learned += table.learn(2 * kSecond + 10, frame(kHost + 100 + i, kHost), 1) ? 1 : 0;
  CHECK(learned == 100);
  CHECK(table.lookup(2 * kSecond + 10, frame(kHost, kHost + 1)) == 5);
}

TEST_CASE("forwarding: every address of a table that is a quarter full is found") {
  Forwarding table(1'024, false, 0, 1);
  for (uint16_t i = 0; i < 256; ++i) REQUIRE(table.add_static(kHost + i, std::vector<uint16_t>{i}));
  for (uint16_t i = 0; i < 256; ++i) REQUIRE(table.lookup(0, frame(1, kHost + i)) == i);
}

TEST_CASE("forwarding: routes can be replaced again and again without filling the table") {
  Forwarding table(64, true, kSecond, 1);
  REQUIRE(table.learn(10, frame(kHost + 7, kHost), 3));
  for (uint64_t round = 0; round < 100; ++round) {
    for (uint16_t i = 0; i < 8; ++i) REQUIRE(table.add_static(kHost + 1'000 * round + 100 + i, std::vector<uint16_t>{i}));
    REQUIRE(table.pin(kHost, kHost + 1'000 * round + 100, 9));
    CHECK(table.lookup(20, frame(kHost, kHost + 1'000 * round + 100)) == 9);
    CHECK(table.lookup(20, frame(kHost, kHost + 1'000 * round + 103)) == 3);
    table.clear_static();
    CHECK(table.lookup(20, frame(kHost, kHost + 1'000 * round + 103)) == Forwarding::kUnknown);
    CHECK(table.lookup(20, frame(kHost, kHost + 7)) == 3);
  }
}
