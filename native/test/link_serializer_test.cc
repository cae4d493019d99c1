#include <doctest/doctest.h>

#include <initializer_list>

#include "base/random.h"
#include "link/serializer.h"

namespace {

using weir::Rate;
using weir::Serializer;
using weir::Time;

// floor(start + frames * bytes * 8 / rate) by 128-bit arithmetic.
Time exact(Time start, uint64_t frames, uint32_t bytes, Rate rate) {
  return start +
         static_cast<Time>(static_cast<unsigned __int128>(frames) * bytes * 8 * 1'000'000'000 / static_cast<uint64_t>(rate));
}

}  // namespace

TEST_CASE("serializer: a million back-to-back frames end exactly when they should") {
  struct Case {
    uint32_t bytes;
    Rate rate;
  };
  for (const auto& [bytes, rate] :
       {Case{64, 400'000'000'000}, Case{84, 800'000'000'000}, Case{9216, 800'000'000'000}, Case{1048, 40'000'000'000},
        Case{1000, 7'000'000'000}, Case{1538, 999'999'937}, Case{84, 1'000'000}, Case{9216, 30}}) {
    CAPTURE(bytes);
    CAPTURE(rate);
    Serializer link(rate);
    Time end = 12'345;
    link.finish(end, 0);
    for (uint64_t i = 1; i <= 1'000'000; ++i) {
      end = link.finish(end, bytes);
      if (i % 99'991 == 0) REQUIRE(end == exact(12'345, i, bytes, rate));
    }
    CHECK(end == exact(12'345, 1'000'000, bytes, rate));
  }
  CHECK(exact(0, 1'000'000, 64, 400'000'000'000) == 1'280'000);  // 1.28 ns each
}

TEST_CASE("serializer: queued, back to back and idle") {
  Serializer link(3'000'000'000);     // 1 byte lasts 2 2/3 ns
  CHECK(link.finish(100, 1) == 102);  // 102.67
  CHECK(link.finish(102, 1) == 105);  // 105.33: the remainder counts
  CHECK(link.finish(50, 1) == 108);   // ready earlier: queues behind, 108.00
  CHECK(link.finish(108, 1) == 110);  // 110.67
  CHECK(link.finish(111, 1) == 113);  // an idle gap: 111 + 2.67
  CHECK(link.busy_until() == 113);
}

TEST_CASE("serializer: rate 0 takes no time but keeps the order") {
  Serializer link;
  CHECK(link.finish(5, 1500) == 5);
  CHECK(link.finish(9, 1500) == 9);
}

TEST_CASE("serializer: random trains against exact arithmetic") {
  weir::Random random(3);
  for (int round = 0; round < 2'000; ++round) {
    const Rate rate = 1 + static_cast<Rate>(random.next() % 800'000'000'000);
    Serializer link(rate);
    Time start = static_cast<Time>(random.next() % 1'000'000);
    for (int train = 0; train < 3; ++train) {
      uint64_t bytes = 0;
      Time end = start;
      for (int i = 0; i < 20; ++i) {
        const auto length = static_cast<uint32_t>(64 + random.next() % 9153);
        bytes += length;
        end = link.finish(i == 0 ? start : end, length);
        REQUIRE(end == exact(start, bytes, 1, rate));
      }
      start = end + 1 + static_cast<Time>(random.next() % 10'000);
    }
  }
}
