// Longest-prefix match against a reference that looks at every route, and groups of next hops.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "switching/route_table.h"

using weir::AddressBits;
using weir::NextHopGroups;
using weir::PrefixTable;
using weir::Random;

namespace {

AddressBits v4(uint32_t address) { return {uint64_t{address} << 32, 0}; }

// All routes in a list.
class Reference {
 public:
  void set(const AddressBits& prefix, uint32_t length, uint32_t value) {
    const AddressBits first = prefix.first(length);
    routes_[{length, first.high, first.low}] = value;
  }
  void remove(const AddressBits& prefix, uint32_t length) {
    const AddressBits first = prefix.first(length);
    routes_.erase({length, first.high, first.low});
  }
  uint32_t find(const AddressBits& prefix, uint32_t length) const {
    const AddressBits first = prefix.first(length);
    const auto found = routes_.find({length, first.high, first.low});
    return found != routes_.end() ? found->second : PrefixTable::kNone;
  }
  uint32_t lookup(const AddressBits& address) const {
    for (uint32_t length = 129; length-- > 0;) {
      const uint32_t value = find(address, length);
      if (value != PrefixTable::kNone) return value;
    }
    return PrefixTable::kNone;
  }
  size_t size() const { return routes_.size(); }

 private:
  std::map<std::tuple<uint32_t, uint64_t, uint64_t>, uint32_t> routes_;
};

// Addresses near each other, so that prefixes nest: few values for each group of bits.
AddressBits drawn(Random& random, uint32_t bits) {
  const uint64_t mask = random.next() & random.next();
  const AddressBits address{random.next() & mask, random.next() & random.next() & random.next()};
  return bits == 32 ? AddressBits{address.high & 0xffffffff00000000, 0} : address;
}

}  // namespace

TEST_CASE("routes: the longest prefix of each address, while routes come, change and go, as a list has it") {
  for (const uint8_t version : {uint8_t{4}, uint8_t{6}}) {
    const uint32_t bits = version == 4 ? 32 : 128;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      CAPTURE(int{version});
      CAPTURE(seed);
      Random random(seed, version);
      PrefixTable table(version);
      Reference reference;
      std::vector<std::pair<AddressBits, uint32_t>> known;
      for (uint32_t step = 0; step < 4'000; ++step) {
        const bool removes = !known.empty() && random.next() % (step < 2'000 ? 4 : 2) == 0;
        const size_t place = known.empty() ? 0 : random.next() % known.size();
        if (removes) {
          const auto [prefix, length] = known[place];
          CHECK(table.remove(prefix, length) == reference.find(prefix, length));
          reference.remove(prefix, length);
          known[place] = known.back();
          known.pop_back();
        } else {
          // Often within one that is there.
          AddressBits prefix = drawn(random, bits);
          const auto length = static_cast<uint32_t>(random.next() % (bits + 1));
          if (!known.empty() && random.next() % 2 == 0) prefix.high ^= known[place].first.high ^ (prefix.high & 0xff00000000);
          if (bits == 32) prefix.high &= 0xffffffff00000000;
          const auto value = static_cast<uint32_t>(random.next() % PrefixTable::kMostValues);
          CHECK(table.set(prefix, length, value) == reference.find(prefix, length));
          reference.set(prefix, length, value);
          known.emplace_back(prefix, length);
        }
        REQUIRE(table.size() == reference.size());
        for (int i = 0; i < 3; ++i) {
          AddressBits address = drawn(random, bits);
          if (i > 0 && !known.empty()) {  // at the edge of a route, on this side or that
            const auto [prefix, length] = known[random.next() % known.size()];
            address = prefix;
            if (i == 2 && bits == 32) address.high ^= uint64_t{1} << (63 - std::min(length, 31u));
            if (i == 2 && bits == 128) address.low ^= random.next() % 2;
          }
          REQUIRE(table.lookup(address) == reference.lookup(address));
        }
      }
      // Nothing is left of them.
      for (const auto& [prefix, length] : known) table.remove(prefix, length);
      CHECK(table.size() == 0);
      for (const auto& [prefix, length] : known) CHECK(table.lookup(prefix) == PrefixTable::kNone);
    }
  }
}

TEST_CASE("routes: the default route, host routes, and what is in between") {
  PrefixTable table(4);
  CHECK(table.lookup(v4(0x0a000001)) == PrefixTable::kNone);
  CHECK(table.set(v4(0), 0, 0) == PrefixTable::kNone);
  CHECK(table.set(v4(0x0a000000), 8, 8) == PrefixTable::kNone);
  CHECK(table.set(v4(0x0a000100), 24, 24) == PrefixTable::kNone);
  CHECK(table.set(v4(0x0a000101), 32, 32) == PrefixTable::kNone);
  CHECK(table.lookup(v4(0x0b000000)) == 0);
  CHECK(table.lookup(v4(0xffffffff)) == 0);
  CHECK(table.lookup(v4(0x0aff0000)) == 8);
  CHECK(table.lookup(v4(0x0a000102)) == 24);
  CHECK(table.lookup(v4(0x0a000101)) == 32);
  CHECK(table.set(v4(0x0a000101), 32, 7) == 32);
  CHECK(table.lookup(v4(0x0a000101)) == 7);
  CHECK(table.remove(v4(0x0a000100), 24) == 24);
  CHECK(table.remove(v4(0x0a000100), 24) == PrefixTable::kNone);
  CHECK(table.lookup(v4(0x0a000102)) == 8);
  CHECK(table.lookup(v4(0x0a000101)) == 7);
}

TEST_CASE("routes: ten thousand changes among a hundred thousand take less than a second") {
  for (const uint8_t version : {uint8_t{4}, uint8_t{6}}) {
    PrefixTable table(version);
    Random random(7, version);
    std::vector<std::pair<AddressBits, uint32_t>> routes;
    for (uint32_t i = 0; i < 100'000; ++i) {
      const auto length = static_cast<uint32_t>(version == 4 ? 8 + random.next() % 25 : 32 + random.next() % 33);
      routes.emplace_back(AddressBits{random.next() & (version == 4 ? 0xffffffff00000000 : ~uint64_t{0}), 0}, length);
      table.set(routes.back().first, length, i);
    }
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < 10'000; ++i) {
      const auto& [prefix, length] = routes[random.next() % routes.size()];
      if (i % 2 == 0) {
        table.remove(prefix, length);
      } else {
        table.set(prefix, length, i);
      }
    }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
  }
}

TEST_CASE("next-hop groups: a hop has places by its weight, and who asks for the same group shares it") {
  NextHopGroups groups;
  const std::vector<NextHopGroups::Way> weighted{{5, 20}, {9, 60}, {2, 40}};
  const uint32_t first = groups.hold(weighted);
  CHECK(groups.hold(weighted) == first);
  CHECK(groups.size() == 1);
  std::map<uint32_t, int> places;
  for (const uint32_t hop : groups.places(first)) ++places[hop];
  CHECK(places == std::map<uint32_t, int>{{5, 1}, {9, 3}, {2, 2}});
  CHECK(std::ranges::equal(groups.ways(first), weighted));

  std::vector<NextHopGroups::Way> many;
  for (uint32_t i = 0; i < NextHopGroups::kMostWays; ++i) many.push_back({i, NextHopGroups::kMostWeight});
  const uint32_t second = groups.hold(many);
  CHECK(second != first);
  CHECK(groups.places(second).size() == 64);

  groups.release(first);
  CHECK(groups.size() == 2);
  groups.release(first);
  CHECK(groups.size() == 1);
  const std::vector<NextHopGroups::Way> one{{3, 200}};
  CHECK(groups.places(groups.hold(one)).size() == 1);
  CHECK(groups.places(second).size() == 64);
}
