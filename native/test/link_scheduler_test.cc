#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/random.h"
#include "link/scheduler.h"

using weir::kPriorities;
using weir::Scheduler;
using weir::SchedulerParameters;

using Heads = std::array<uint32_t, kPriorities>;

TEST_CASE("scheduler: strict priorities first, the highest first") {
  SchedulerParameters parameters;
  parameters.strict = 1 << 6 | 1 << 4;
  Scheduler scheduler;
  scheduler.configure(parameters);
  Heads heads;
  heads.fill(1'000);
  for (int i = 0; i < 20; ++i) {
    CHECK(scheduler.pick(0xff, 0, heads) == 6);
    CHECK(scheduler.pick(0xff, 1 << 6, heads) == 4);
    CHECK(scheduler.pick(0xff & ~(1 << 6), 0, heads) == 4);
    const int other = scheduler.pick(0xff, 1 << 6 | 1 << 4, heads);
    CHECK((other != 6 && other != 4 && other >= 0));
  }
  CHECK(scheduler.pick(0, 0, heads) == -1);
  CHECK(scheduler.pick(0xff, 0xff, heads) == -1);
  CHECK(scheduler.pick(1 << 2, 1 << 2, heads) == -1);
}

TEST_CASE("scheduler: bytes are shared by weight whatever the frame sizes") {
  SchedulerParameters parameters;
  parameters.strict = 0;
  parameters.weights = {50, 1, 1, 30, 1, 20, 1, 1};
  const uint8_t backlogged = 1 << 0 | 1 << 3 | 1 << 5;
  Heads sizes{};
  SUBCASE("constant sizes") { sizes = {84, 0, 0, 1'542, 0, 9'042, 0, 0}; }
  SUBCASE("the heaviest with the largest") { sizes = {9'042, 0, 0, 1'542, 0, 84, 0, 0}; }
  SUBCASE("random sizes") {}
  Scheduler scheduler;
  scheduler.configure(parameters);
  weir::Random random(1);
  const auto next_size = [&](size_t q) {
    return sizes[q] != 0 ? sizes[q] : static_cast<uint32_t>(84 + random.next() % (q == 0 ? 200 : 9'000));
  };
  Heads heads{};
  for (const size_t q : {0, 3, 5}) heads[q] = next_size(q);
  std::array<uint64_t, kPriorities> sent{};
  uint64_t total = 0;
  for (int i = 0; i < 100'000; ++i) {
    const int q = scheduler.pick(backlogged, 0, heads);
    REQUIRE((q == 0 || q == 3 || q == 5));
    const size_t at = static_cast<size_t>(q);
    sent[at] += heads[at];
    total += heads[at];
    heads[at] = next_size(at);
  }
  const auto share = [&](size_t q) { return static_cast<double>(sent[q]) / static_cast<double>(total); };
  CHECK(share(0) == doctest::Approx(0.5).epsilon(0.005));
  CHECK(share(3) == doctest::Approx(0.3).epsilon(0.005));
  CHECK(share(5) == doctest::Approx(0.2).epsilon(0.005));
}

TEST_CASE("scheduler: a paused queue is not served and stands in nobody's way") {
  SchedulerParameters parameters;
  parameters.strict = 1 << 6;
  Scheduler scheduler;
  scheduler.configure(parameters);
  Heads heads;
  heads.fill(1'500);
  std::array<int, kPriorities> sent{};
  for (int i = 0; i < 1'000; ++i) ++sent[static_cast<size_t>(scheduler.pick(0x4f, 1 << 6 | 1 << 1, heads))];
  CHECK(sent[6] == 0);
  CHECK(sent[1] == 0);
  CHECK(std::min({sent[0], sent[2], sent[3]}) >= 330);
  // Paused for long does not mean owed much: it resumes at its share.
  std::fill(sent.begin(), sent.end(), 0);
  for (int i = 0; i < 1'000; ++i) ++sent[static_cast<size_t>(scheduler.pick(0x0f, 0, heads))];
  CHECK(sent[1] >= 245);
  CHECK(sent[1] <= 255);
}

TEST_CASE("scheduler: only what is backlogged and not paused, always something if there is any, nobody starves") {
  SchedulerParameters parameters;
  parameters.strict = 0;
  parameters.weights = {1, 100, 2, 50, 1, 7, 1, 99};
  Scheduler scheduler;
  scheduler.configure(parameters);
  weir::Random random(5);
  std::array<uint64_t, kPriorities> waited{};
  for (int i = 0; i < 100'000; ++i) {
    Heads heads{};
    for (uint32_t& head : heads) head = static_cast<uint32_t>(84 + random.next() % 9'000);
    const uint8_t backlogged = static_cast<uint8_t>(random.next() | random.next());
    const uint8_t paused = static_cast<uint8_t>(random.next() & random.next());
    const uint8_t ready = static_cast<uint8_t>(backlogged & ~paused);
    const int q = scheduler.pick(backlogged, paused, heads);
    if (ready == 0) {
      REQUIRE(q == -1);
      continue;
    }
    REQUIRE(q >= 0);
    REQUIRE((ready >> q & 1) != 0);
    for (size_t p = 0; p < kPriorities; ++p) waited[p] = static_cast<int>(p) == q ? 0 : waited[p] + 1;
    REQUIRE(*std::max_element(waited.begin(), waited.end()) < 20'000);
  }
}
