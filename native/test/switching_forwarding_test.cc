#include <doctest/doctest.h>

#include <cstdint>
#include <span>
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

int lookup(const Forwarding& table, Time now, const PacketMeta& meta) {
  return table.lookup(now, meta, [](std::span<const uint16_t> ports) { return ports[0]; });
}

}  // namespace

TEST_CASE("forwarding: of several next hops the caller chooses, in the order in which they were given") {
  Forwarding table(64, false, 0);
  const std::vector<uint16_t> several{4, 7, 2, 9};
  const std::vector<uint16_t> one{5};
  REQUIRE(table.add_static(kHost + 1, several));
  REQUIRE(table.add_static(kHost + 2, one));
  table.add_static_range(kHost + 10, {0, 1, Forwarding::kNoGroup}, std::vector<std::vector<uint16_t>>{{3, 8}, {6}});
  std::vector<uint16_t> offered;
  const auto last = [&](std::span<const uint16_t> ports) {
    offered.assign(ports.begin(), ports.end());
    return ports.back();
  };
  CHECK(table.lookup(0, frame(kHost, kHost + 1), last) == 9);
  CHECK(offered == several);
  CHECK(table.lookup(0, frame(kHost, kHost + 10), last) == 8);
  CHECK(offered == std::vector<uint16_t>{3, 8});
  offered.clear();
  CHECK(table.lookup(0, frame(kHost, kHost + 2), last) == 5);
  CHECK(table.lookup(0, frame(kHost, kHost + 11), last) == 6);
  CHECK(table.lookup(0, frame(kHost, kHost + 12), last) == Forwarding::kUnknown);
  CHECK(offered.empty());
}

TEST_CASE("forwarding: static entries hold in every VLAN, do not age, and unknown or group addresses have no port") {
  Forwarding table(16, false, 0);
  const std::vector<uint16_t> port{5};
  REQUIRE(table.add_static(kHost + 1, port));
  CHECK_FALSE(table.add_static(kHost + 2, {}));
  CHECK(lookup(table, 1'000 * kSecond, frame(kHost, kHost + 1, 0, 17)) == 5);
  CHECK(lookup(table, 0, frame(kHost, kHost + 1)) == 5);
  CHECK(lookup(table, 0, frame(kHost, kHost + 2)) == Forwarding::kUnknown);
  CHECK(lookup(table, 0, frame(kHost, 0xffffffffffff)) == Forwarding::kUnknown);
  CHECK(lookup(table, 0, frame(kHost, 0x01005e000001)) == Forwarding::kUnknown);
}

TEST_CASE("forwarding: a pin decides for one source, the group for the others") {
  Forwarding table(64, false, 0);
  const std::vector<uint16_t> ports{1, 2};
  REQUIRE(table.add_static(kHost + 1, ports));
  REQUIRE(table.pin(kHost + 7, kHost + 1, 9));
  int others = 0;
  for (uint32_t flow = 0; flow < 100; ++flow) {
    CHECK(lookup(table, 0, frame(kHost + 7, kHost + 1, flow)) == 9);
    others += lookup(table, 0, frame(kHost + 8, kHost + 1, flow)) == 9 ? 1 : 0;
    others += lookup(table, 0, frame(kHost + 1, kHost + 7, flow)) == 9 ? 1 : 0;  // not the other way round
  }
  CHECK(others == 0);
}

TEST_CASE("forwarding: learning, moving, ageing and VLANs") {
  const Time ageing = 300 * kSecond;
  Forwarding table(64, true, ageing);
  CHECK(lookup(table, 0, frame(kHost, kHost + 1)) == Forwarding::kUnknown);
  REQUIRE(table.learn(10, frame(kHost + 1, kHost), 3));
  CHECK(lookup(table, 10, frame(kHost, kHost + 1)) == 3);
  CHECK(lookup(table, 10 + ageing - 1, frame(kHost, kHost + 1)) == 3);
  CHECK(lookup(table, 10 + ageing, frame(kHost, kHost + 1)) == Forwarding::kUnknown);
  REQUIRE(table.learn(20, frame(kHost + 1, kHost), 4));  // the station moved; its age starts again
  CHECK(lookup(table, 10 + ageing, frame(kHost, kHost + 1)) == 4);
  // Another VLAN is another network; priority bits are not part of the VLAN.
  REQUIRE(table.learn(20, frame(kHost + 1, kHost, 0, 100), 6));
  CHECK(lookup(table, 21, frame(kHost, kHost + 1, 0, 100)) == 6);
  CHECK(lookup(table, 21, frame(kHost, kHost + 1, 0, 101)) == Forwarding::kUnknown);
  CHECK(lookup(table, 21, frame(kHost, kHost + 1)) == 4);
  // Group addresses are never learned.
  REQUIRE(table.learn(30, frame(0x010000000001, kHost), 2));
  CHECK(lookup(table, 31, frame(kHost, 0x010000000001)) == Forwarding::kUnknown);
}

TEST_CASE("forwarding: a static entry wins over a learned one") {
  Forwarding table(64, true, kSecond);
  const std::vector<uint16_t> port{5};
  REQUIRE(table.add_static(kHost + 1, port));
  REQUIRE(table.learn(1, frame(kHost + 1, kHost), 2));  // someone claims the address
  CHECK(lookup(table, 2, frame(kHost, kHost + 1)) == 5);
}

namespace {

uint64_t hostile(weir::Random& random) { return random.next() & 0xfeff'ffff'ffff; }

int learn_hostile(Forwarding& table, weir::Random& random, Time now, uint16_t port, int count) {
  int stored = 0;
  for (int i = 0; i < count; ++i) {
    const int vlan = static_cast<int>(random.next() & 0xfff);
    stored += table.learn(now, frame(hostile(random), kHost, 0, vlan), port) ? 1 : 0;
  }
  return stored;
}

}  // namespace

TEST_CASE("forwarding: hostile addresses fill the table, no more, and take nobody's place but their own") {
  Forwarding table(256, true, kSecond);
  const std::vector<uint16_t> port{5};
  REQUIRE(table.add_static(kHost + 1, port));
  REQUIRE(table.learn(1, frame(kHost + 2, kHost), 6));
  weir::Random random(1);
  learn_hostile(table, random, 2, 7, 20'000);
  CHECK(table.entries().size() == 256);
  CHECK(table.learned(7) == 254);
  CHECK(lookup(table, 3, frame(kHost, kHost + 1)) == 5);
  CHECK(lookup(table, 3, frame(kHost, kHost + 2)) == 6);
  REQUIRE(table.learn(3, frame(kHost + 2, kHost), 8));  // an address that is in may move even when it is full
  CHECK(lookup(table, 3, frame(kHost, kHost + 2)) == 8);
  int learned = 0;
  for (uint64_t i = 0; i < 100; ++i) learned += table.learn(2 * kSecond + 10, frame(kHost + 100 + i, kHost), 1) ? 1 : 0;
  CHECK(learned == 100);
  CHECK(lookup(table, 2 * kSecond + 10, frame(kHost, kHost + 1)) == 5);
}

TEST_CASE("forwarding: in a full table others still learn, from whoever has most of it") {
  Forwarding table(256, true, 300 * kSecond);
  weir::Random random(1);
  learn_hostile(table, random, 1, 7, 20'000);
  const uint32_t all = table.learned(7);
  CHECK(all > 250);
  uint32_t in_place = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    const Forwarding::Learned learned = table.learn(2, frame(kHost + i, kHost), static_cast<uint16_t>(i % 3));
    REQUIRE(learned);
    if (learned.outcome == Forwarding::Learned::Outcome::in_place) {
      ++in_place;
      CHECK(learned.forgotten == 7);
    }
  }
  CHECK(in_place > 50);
  CHECK(table.learned(7) == all - in_place);
  // They stay, whatever comes then.
  learn_hostile(table, random, 3, 7, 20'000);
  for (uint64_t i = 0; i < 60; ++i) CHECK(lookup(table, 4, frame(1, kHost + i)) == static_cast<int>(i % 3));
  CHECK(table.learned(0) + table.learned(1) + table.learned(2) == 60);
}

TEST_CASE("forwarding: of the port that has most, the address goes that was heard of least lately") {
  Forwarding table(16, true, 300 * kSecond);  // one look sees all of it
  for (uint64_t i = 0; i < 16; ++i) REQUIRE(table.learn(static_cast<Time>(10 + i), frame(kHost + i, kHost), i < 6 ? 1 : 2));
  REQUIRE(table.learn(50, frame(kHost + 6, kHost), 2));  // the oldest of port 2 is heard of again
  const Forwarding::Learned learned = table.learn(60, frame(kHost + 100, kHost), 1);
  CHECK(learned.outcome == Forwarding::Learned::Outcome::in_place);
  CHECK(learned.forgotten == 2);
  CHECK(lookup(table, 61, frame(1, kHost + 6)) == 2);
  CHECK(lookup(table, 61, frame(1, kHost + 7)) == Forwarding::kUnknown);
  CHECK(lookup(table, 61, frame(1, kHost + 100)) == 1);
  CHECK(table.learned(1) == 7);
  CHECK(table.learned(2) == 9);
  for (uint64_t i = 0; i < 6; ++i) CHECK(lookup(table, 61, frame(1, kHost + i)) == 1);
  // Equals take nothing from each other: here port 1 gets to 8, as port 2 has, and then replaces its own.
  CHECK(table.learn(62, frame(kHost + 101, kHost), 1).forgotten == 2);
  CHECK(table.learn(63, frame(kHost + 102, kHost), 1).forgotten == 1);
  CHECK(table.learned(1) == 8);
  CHECK(table.learned(2) == 8);
}

TEST_CASE("forwarding: a port at its limit replaces its own, and has room again when they have aged") {
  Forwarding table(1'024, true, kSecond);
  table.limit(7, 100);
  weir::Random random(1);
  CHECK(learn_hostile(table, random, 1, 7, 100) == 100);
  const int more = learn_hostile(table, random, 2, 7, 5'000);
  CHECK(more > 0);
  CHECK(more < 5'000);  // where none of its own is near
  CHECK(table.learned(7) == 100);
  CHECK(table.learn(3, frame(kHost, kHost + 1), 3).outcome == Forwarding::Learned::Outcome::stored);
  REQUIRE(table.learn(3, frame(kHost + 1, kHost), 3));
  // One of another port does not come to it either while it is full.
  CHECK(table.learn(4, frame(kHost + 1, kHost), 7).outcome == Forwarding::Learned::Outcome::limited);
  CHECK(lookup(table, 5, frame(1, kHost + 1)) == 3);
  // They have aged in a second, which is found out while new ones come.
  CHECK(learn_hostile(table, random, 2 * kSecond, 7, 300) >= 100);
  CHECK(table.learned(7) == 100);
  table.limit(7, 0);
  CHECK(learn_hostile(table, random, 2 * kSecond, 7, 100) == 100);
  CHECK(table.learned(7) == 200);
}

TEST_CASE("forwarding: how many each port has is known whatever they do") {
  Forwarding table(128, true, 50);
  weir::Random random(7);
  for (uint16_t port = 0; port < 4; ++port) table.limit(port, port == 3 ? 20 : 0);
  for (Time now = 10; now < 20'000; ++now) {
    const uint64_t mac = kHost + random.next() % 300;
    const auto port = static_cast<uint16_t>(random.next() % 4);
    if (random.next() % 3 == 0) {
      table.hear(now, now - static_cast<Time>(random.next() % 40), mac, 0, port);
    } else {
      table.learn(now, frame(mac, kHost), port);
    }
    if (now % 1'000 == 500) REQUIRE(table.add_static(0x020000000000 + random.next() % 1'000, std::vector<uint16_t>{1}));
    if (now % 5'000 == 0) table.clear_static();
    std::array<uint32_t, 4> counted{};
    for (const Forwarding::Entry& entry : table.entries()) {
      if (entry.expires > 1 && Forwarding::is_learned(entry)) ++counted[entry.first_port];
    }
    for (uint16_t p = 0; p < 4; ++p) REQUIRE(table.learned(p) == counted[p]);
    REQUIRE(table.learned(3) <= 20);
  }
}

TEST_CASE("forwarding: routes find room in a table that is full of learned addresses") {
  Forwarding table(64, true, 300 * kSecond);
  weir::Random random(3);
  learn_hostile(table, random, 1, 7, 5'000);
  for (uint16_t i = 0; i < 16; ++i) REQUIRE(table.add_static(kHost + i, std::vector<uint16_t>{i}));
  for (uint16_t i = 0; i < 16; ++i) CHECK(lookup(table, 2, frame(1, kHost + i)) == i);
}

TEST_CASE("forwarding: every address of a table that is a quarter full is found") {
  Forwarding table(1'024, false, 0);
  for (uint16_t i = 0; i < 256; ++i) REQUIRE(table.add_static(kHost + i, std::vector<uint16_t>{i}));
  for (uint16_t i = 0; i < 256; ++i) REQUIRE(lookup(table, 0, frame(1, kHost + i)) == i);
}

TEST_CASE("forwarding: routes can be replaced again and again without filling the table") {
  Forwarding table(64, true, kSecond);
  REQUIRE(table.learn(10, frame(kHost + 7, kHost), 3));
  for (uint64_t round = 0; round < 100; ++round) {
    for (uint16_t i = 0; i < 8; ++i) REQUIRE(table.add_static(kHost + 1'000 * round + 100 + i, std::vector<uint16_t>{i}));
    REQUIRE(table.pin(kHost, kHost + 1'000 * round + 100, 9));
    CHECK(lookup(table, 20, frame(kHost, kHost + 1'000 * round + 100)) == 9);
    CHECK(lookup(table, 20, frame(kHost, kHost + 1'000 * round + 103)) == 3);
    table.clear_static();
    CHECK(lookup(table, 20, frame(kHost, kHost + 1'000 * round + 103)) == Forwarding::kUnknown);
    CHECK(lookup(table, 20, frame(kHost, kHost + 7)) == 3);
  }
}
