// What is remembered of phases of message graphs.
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "simulation/phase_memory.h"

namespace weir::test {
namespace {

constexpr Time kLeastSlack = 100;

// Two messages, of flows 3 and 5, that take 10 us each.
std::vector<PhaseMessage> two() {
  return {{.flow = 3, .number = 0, .bytes = 1'000, .age = 1, .begins = 0, .arrives = 10'000, .acknowledged = 11'000},
          {.flow = 5, .number = 0, .bytes = 2'000, .age = 1, .begins = 4'000, .arrives = 14'000, .acknowledged = 15'000}};
}

TEST_CASE("phase memory: a message alone is recalled by way, age, bytes and whether it follows another") {
  PhaseMemory memory(0.02, kLeastSlack);
  PhaseMemory::Times times;
  const PhaseMemory::Alone key{.way = 2, .age = 1, .follows = false, .bytes = 500};
  CHECK_FALSE(memory.recall(key, times));
  memory.learn(key, {700, 50}, 0);
  REQUIRE(memory.recall(key, times));
  CHECK(times.arrives == 700);
  CHECK(times.acknowledged == 50);
  CHECK_FALSE(memory.recall({.way = 1, .age = 1, .follows = false, .bytes = 500}, times));
  CHECK_FALSE(memory.recall({.way = 2, .age = 0, .follows = false, .bytes = 500}, times));
  CHECK_FALSE(memory.recall({.way = 2, .age = 1, .follows = true, .bytes = 500}, times));
  CHECK_FALSE(memory.recall({.way = 2, .age = 1, .follows = false, .bytes = 501}, times));
  CHECK(memory.alone() == 1);
}

TEST_CASE("phase memory: the mean is that of the latest stretch") {
  PhaseMemory memory(0.02, kLeastSlack);
  PhaseMemory::Times times;
  const PhaseMemory::Alone key{.way = 0, .age = 0, .follows = false, .bytes = 8};
  memory.learn(key, {100, 10}, 0);
  memory.learn(key, {300, 30}, 0);
  REQUIRE(memory.recall(key, times));
  CHECK(times.arrives == 200);
  CHECK(times.acknowledged == 20);
  memory.learn(key, {500, 50}, 1);
  REQUIRE(memory.recall(key, times));
  CHECK(times.arrives == 500);
}

TEST_CASE("phase memory: a message fits to a phase by flow, number, bytes, age, and a begin within the slack") {
  PhaseMemory memory(0.02, kLeastSlack);
  memory.learn(two());
  REQUIRE(memory.with(5).size() == 1);
  CHECK(memory.with(4).empty());
  const uint32_t phase = memory.with(5)[0];
  // 2 % of 10 us.
  REQUIRE(memory.slack(phase) == 200);
  const auto place = [&](auto change) {
    PhaseMessage message = two()[1];
    change(message);
    return memory.place(phase, message);
  };
  CHECK(place([](PhaseMessage&) {}) == 1);
  CHECK(place([](PhaseMessage& m) { m.begins += 200; }) == 1);
  CHECK(place([](PhaseMessage& m) { m.begins -= 200; }) == 1);
  CHECK(place([](PhaseMessage& m) { m.begins += 201; }) == PhaseMemory::kNone);
  CHECK(place([](PhaseMessage& m) { m.begins -= 201; }) == PhaseMemory::kNone);
  CHECK(place([](PhaseMessage& m) { m.bytes = 2'001; }) == PhaseMemory::kNone);
  CHECK(place([](PhaseMessage& m) { m.age = 0; }) == PhaseMemory::kNone);
  CHECK(place([](PhaseMessage& m) { m.number = 1; }) == PhaseMemory::kNone);
  CHECK(place([](PhaseMessage& m) { m.flow = 4; }) == PhaseMemory::kNone);
}

TEST_CASE("phase memory: slack is never less than the least, and a phase can be replaced") {
  PhaseMemory memory(0.001, kLeastSlack);
  memory.learn(two());
  CHECK(memory.slack(0) == kLeastSlack);
  std::vector<PhaseMessage> later = two();
  later[1].arrives = 20'000;
  memory.replace(0, std::move(later));
  CHECK(memory.phases() == 1);
  CHECK(memory.messages(0)[1].arrives == 20'000);
}

TEST_CASE("phase memory: of one flow only so many phases are kept") {
  PhaseMemory memory(0.02, kLeastSlack);
  for (int i = 0; i < 100; ++i) memory.learn(two());
  CHECK(memory.phases() == 16);
}

}  // namespace
}  // namespace weir::test
