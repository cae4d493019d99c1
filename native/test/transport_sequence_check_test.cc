#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>

#include "transport/psn.h"

using weir::SequenceCheck;

TEST_CASE("sequence check: in order across the wrap") {
  SequenceCheck check(0xff'fff0);
  for (uint32_t i = 0; i < 64; ++i) {
    const SequenceCheck::Verdict verdict = check.observe((0xff'fff0 + i) & 0xff'ffff);
    REQUIRE_FALSE(verdict.duplicate);
    REQUIRE(verdict.missing == 0);
  }
  CHECK(check.expected() == 0x30);
}

TEST_CASE("sequence check: gaps and duplicates, also across the wrap") {
  SequenceCheck check(0xff'fffe);
  CHECK(check.observe(0xff'fffe).missing == 0);
  SequenceCheck::Verdict verdict = check.observe(3);  // 0xffffff, 0, 1 and 2 are missing
  CHECK_FALSE(verdict.duplicate);
  CHECK(verdict.missing == 4);
  CHECK(check.expected() == 4);
  for (const uint32_t old : {3u, 0u, 0xff'ffffu, 0xff'fffeu}) {
    verdict = check.observe(old);
    CHECK(verdict.duplicate);
    CHECK(verdict.missing == 0);
    CHECK(check.expected() == 4);
  }
  CHECK(check.observe(4).missing == 0);
}

TEST_CASE("sequence check: half of the numbers are ahead, half behind; bits above 24 do not count") {
  SequenceCheck check(0);
  CHECK(check.observe(1u << 23).duplicate);
  CHECK(check.expected() == 0);
  CHECK(check.observe((1u << 23) - 1).missing == (1u << 23) - 1);
  CHECK(check.expected() == 1u << 23);
  CHECK(check.observe(0xab00'0000 | 1u << 23).missing == 0);
  SequenceCheck high(0xff00'0007);
  CHECK(high.expected() == 7);
}
