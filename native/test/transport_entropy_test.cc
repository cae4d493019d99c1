// Spraying over entropy values: which value the next packet has, after what has become of those before.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "transport/entropy.h"

namespace weir {
namespace {

constexpr Time kFreeze = 10 * kMillisecond;

Entropy make(Spraying how, uint16_t values) { return {how, values, kFreeze, Random(3)}; }

std::vector<uint16_t> next(Entropy& entropy, size_t count, Time now = 0) {
  std::vector<uint16_t> values(count);
  for (uint16_t& value : values) value = entropy.next(now);
  return values;
}

using Values = std::vector<uint16_t>;

}  // namespace

TEST_CASE("entropy: oblivious takes each value once in a round, from another one on each time") {
  Entropy entropy = make(Spraying::oblivious, 100);
  std::set<uint16_t> firsts;
  for (int round = 0; round < 20; ++round) {
    Values values = next(entropy, 100);
    firsts.insert(values.front());
    std::ranges::sort(values);
    for (uint16_t i = 0; i < 100; ++i) REQUIRE(values[i] == i);
    entropy.acknowledged(5, false);
    entropy.timed_out(0);
  }
  CHECK(firsts.size() > 10);
}

TEST_CASE("entropy: reps takes what was acknowledged without a mark once more, the oldest first, and else draws") {
  Entropy entropy = make(Spraying::reps, kMaxEntropies);
  const Values drawn = next(entropy, 4);
  CHECK(std::set(drawn.begin(), drawn.end()).size() == 4);
  entropy.acknowledged(drawn[2], false);
  entropy.acknowledged(drawn[0], true);
  entropy.acknowledged(drawn[3], false);
  CHECK(next(entropy, 2) == Values{drawn[2], drawn[3]});
  const Values more = next(entropy, 50);
  for (const uint16_t before : drawn) CHECK(std::ranges::find(more, before) == more.end());
  // One that comes back is used once more each time.
  for (int i = 0; i < 20; ++i) {
    entropy.acknowledged(drawn[1], false);
    CHECK(entropy.next(0) == drawn[1]);
  }
}

TEST_CASE("entropy: reps keeps the newest eight") {
  Entropy entropy = make(Spraying::reps, kMaxEntropies);
  for (uint16_t value = 1; value <= 11; ++value) entropy.acknowledged(value, false);
  CHECK(next(entropy, 8) == Values{4, 5, 6, 7, 8, 9, 10, 11});
  const uint16_t drawn = entropy.next(0);
  CHECK((drawn < 4 || drawn > 11));
  // Values that are kept are used in the order in which they came, whatever was used between.
  entropy.acknowledged(21, false);
  entropy.acknowledged(22, false);
  CHECK(entropy.next(0) == 21);
  entropy.acknowledged(23, false);
  CHECK(next(entropy, 2) == Values{22, 23});
}

TEST_CASE("entropy: after a timeout reps goes round what it had kept, then explores and keeps anew") {
  Entropy entropy = make(Spraying::reps, kMaxEntropies);
  for (const uint16_t value : {101, 102, 103}) entropy.acknowledged(value, false);
  CHECK(next(entropy, 3) == Values{101, 102, 103});
  entropy.timed_out(1'000);
  Values round = next(entropy, 6, 2'000);
  CHECK(std::set(round.begin(), round.end()) == std::set<uint16_t>{101, 102, 103});
  CHECK(std::equal(round.begin(), round.begin() + 3, round.begin() + 3));
  // Values that come meanwhile are used first; another timeout does not make it longer.
  entropy.acknowledged(104, false);
  CHECK(entropy.next(3'000) == 104);
  entropy.timed_out(kFreeze);
  entropy.acknowledged(105, false);
  const Values explored = next(entropy, Entropy::kExplored, kFreeze + 1'000);
  CHECK(std::ranges::find(explored, 105) == explored.end());
  // While it explores it keeps values that come, for then.
  Values later = next(entropy, 4, kFreeze + 2'000);
  for (const uint16_t old : {101, 102, 103, 104, 105}) CHECK(std::ranges::find(later, old) == later.end());
  entropy.acknowledged(106, false);
  CHECK(entropy.next(kFreeze + 3'000) == 106);
}

TEST_CASE("entropy: values are below how many there are, and the same draws give the same values") {
  for (const Spraying how : {Spraying::oblivious, Spraying::reps}) {
    for (const uint16_t values : {uint16_t{1}, uint16_t{7}, kMaxEntropies}) {
      Entropy one = make(how, values);
      Entropy other = make(how, values);
      const Values drawn = next(one, 1'000);
      CHECK(*std::ranges::max_element(drawn) < values);
      CHECK(drawn == next(other, 1'000));
    }
  }
}

}  // namespace weir
