#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "base/random.h"
#include "link/token_bucket.h"

namespace {

using weir::kMicrosecond;
using weir::kSecond;
using weir::Random;
using weir::Rate;
using weir::Time;
using weir::TokenBucket;
using weir::TokenBucketParameters;

constexpr Rate kGigabit = 1'000'000'000;  // 2000 tokens a tick of 16 us
constexpr Time ticks(Time count) { return count * 16 * kMicrosecond; }

struct Limiter {
  explicit Limiter(const TokenBucketParameters& p = {}) : parameters(p) { bucket.configure(&parameters); }
  // Sends as early as possible; when.
  Time send(uint32_t bytes, Rate rate) {
    const Time at = bucket.release();
    bucket.sent(at, bytes, rate);
    return at;
  }
  TokenBucketParameters parameters;
  TokenBucket bucket;
};

}  // namespace

TEST_CASE("token bucket: a full bucket, then whole ticks") {
  Limiter limiter;
  limiter.bucket.reset(1'000);
  CHECK(limiter.send(1'500, kGigabit) == 1'000);             // 3000 in the bucket, 1500 left
  CHECK(limiter.send(1'500, kGigabit) == 1'000);             // 0 left
  CHECK(limiter.send(1'500, kGigabit) == 1'000 + ticks(1));  // 500 left
  CHECK(limiter.send(1'500, kGigabit) == 1'000 + ticks(2));  // 1000 left
  CHECK(limiter.send(1'500, kGigabit) == 1'000 + ticks(3));  // 1500 left
  CHECK(limiter.send(1'500, kGigabit) == 1'000 + ticks(3));  // 0 left
  CHECK(limiter.send(1'500, kGigabit) == 1'000 + ticks(4));
  limiter.bucket.sent(1'000 + ticks(100) + 5, 1'500, kGigabit);  // long full again
  CHECK(limiter.bucket.release() == 1'000 + ticks(100) + 5);
  CHECK(limiter.send(1'500, kGigabit) == 1'000 + ticks(100) + 5);
  CHECK(limiter.bucket.release() == 1'000 + ticks(101));
}

TEST_CASE("token bucket: rates come in steps of 0.5 Mb/s, and none is lower") {
  struct Case {
    Rate rate;
    Time ticks_each;  // for 1500 bytes
  };
  for (const auto& [rate, each] : {Case{1, 1'500}, Case{400'000, 1'500}, Case{500'000, 1'500}, Case{999'999, 1'500},
                                   Case{1'000'000, 750}, Case{1'499'999, 750}, Case{1'500'000, 500}, Case{5'000'000, 150}}) {
    CAPTURE(rate);
    Limiter limiter;
    limiter.send(1'500, rate);
    limiter.send(1'500, rate);
    for (Time i = 1; i < 20; ++i) REQUIRE(limiter.send(1'500, rate) == ticks(i * each));
  }
}

TEST_CASE("token bucket: average rate over a second") {
  for (const Rate rate : {500'000ll, 123'456'789ll, 499'999'999ll, 950'000'000ll, 1'000'000'000ll}) {
    CAPTURE(rate);
    Limiter limiter;
    double sent = 0;
    while (limiter.bucket.release() < kSecond) {
      limiter.send(1'000, rate);
      sent += 1'000;
    }
    const double granted = static_cast<double>(rate / 500'000) * 500'000 / 8;
    CHECK(sent >= granted - 1'000);
    CHECK(sent <= granted + 3'000);
  }
}

TEST_CASE("token bucket: packets that do not fit beside a tick's tokens get less than the rate") {
  Limiter limiter;
  CHECK(limiter.send(4'170, kGigabit) == 0);                                           // the bucket holds 3000: a debt of 1170
  for (Time i = 1; i < 10; ++i) CHECK(limiter.send(4'170, kGigabit) == ticks(3 * i));  // -1170 + 3 x 2000 > 3000: full
  TokenBucketParameters deep;
  deep.depth = 8'000;
  Limiter enough(deep);
  Time last = 0;
  for (int i = 0; i < 10'000; ++i) last = enough.send(4'170, kGigabit);
  CHECK(static_cast<double>(last) == doctest::Approx(10'000 * 4'170 * 8.0).epsilon(1e-3));
}

TEST_CASE("token bucket: a larger packet than the last leaves a debt") {
  Limiter limiter;
  limiter.send(2'900, kGigabit);                  // 100 left
  CHECK(limiter.send(64, kGigabit) == ticks(2));  // taken to be of 2900 bytes: at 2100 not yet; 3000 at tick 2, 2936 left
  CHECK(limiter.send(1'500, kGigabit) == ticks(2));
  CHECK(limiter.send(1'500, kGigabit) == ticks(3));  // 1436 + 2000 is more than it holds; 1500 left
  CHECK(limiter.send(64, kGigabit) == ticks(3));
  CHECK(limiter.send(3'000, kGigabit) == ticks(3));  // 1436 - 3000
  CHECK(limiter.send(64, kGigabit) == ticks(6));     // -1564 + 3 x 2000: full
}

TEST_CASE("token bucket: ticks after a change bring the new rate's tokens") {
  Limiter limiter;
  limiter.send(1'500, 500'000);
  limiter.send(1'500, 500'000);
  CHECK(limiter.bucket.release() == ticks(1'500));
  limiter.bucket.rate_changed(ticks(500), 5'000'000);  // that tick still brought one: 500; 1000 more at 10 a tick
  CHECK(limiter.bucket.release() == ticks(600));
  limiter.bucket.rate_changed(ticks(590) + 1, 500'000);  // 500 + 90 x 10 = 1400
  CHECK(limiter.bucket.release() == ticks(690));
  limiter.bucket.rate_changed(ticks(700), 1'000'000);  // released already
  CHECK(limiter.bucket.release() == ticks(690));
  limiter.bucket.sent(ticks(700), 1'500, 1'000'000);  // 1510 by then: 10 left
  CHECK(limiter.bucket.release() == ticks(700 + 745));
  limiter.bucket.rate_changed(ticks(800), 0);
  CHECK(limiter.bucket.release() == ticks(800));
  for (int i = 0; i < 5; ++i) {
    limiter.bucket.sent(ticks(800), 1'500, 0);
    CHECK(limiter.bucket.release() == ticks(800));
  }
  limiter.bucket.rate_changed(ticks(800), 500'000);  // with a full bucket
  CHECK(limiter.send(1'500, 500'000) == ticks(800));
  CHECK(limiter.send(1'500, 500'000) == ticks(800));
  CHECK(limiter.send(1'500, 500'000) == ticks(2'300));
}

TEST_CASE("token bucket: what goes ahead of its release is charged") {
  Limiter limiter;
  limiter.send(1'500, kGigabit);
  limiter.send(1'500, kGigabit);
  for (int i = 0; i < 4; ++i) limiter.bucket.sent(10, 1'500, kGigabit);  // -6000
  CHECK(limiter.bucket.release() == ticks(4));                           // 2000
  limiter.bucket.reset(ticks(2) + 7);
  CHECK(limiter.send(1'500, kGigabit) == ticks(2) + 7);
  CHECK(limiter.send(1'500, kGigabit) == ticks(2) + 7);
  CHECK(limiter.send(1'500, kGigabit) == ticks(3) + 7);  // the ticks run from the reset
}

TEST_CASE("token bucket: bytes in any window stay below depth + one tick + rate x window, however late the sender") {
  Random random(5);
  for (int round = 0; round < 50; ++round) {
    const Rate rate = 500'000 * static_cast<Rate>(1 + random.next() % 2'000);
    const auto bytes = static_cast<uint32_t>(84 + random.next() % 2'900);
    const double per_ns = static_cast<double>(rate) / 8e9;
    Limiter limiter;
    Time now = 0;
    Time last = 0;
    double excess = 0;  // the largest, over all windows that end now, of bytes - rate x window
    double worst = 0;
    for (int i = 0; i < 20'000; ++i) {
      now = std::max(now, limiter.bucket.release());
      if (random.next() % 4 == 0) now += static_cast<Time>(random.uniform() * 3 * bytes / per_ns);
      excess = std::max(0.0, excess - static_cast<double>(now - last) * per_ns) + bytes;
      worst = std::max(worst, excess);
      REQUIRE(excess <= 3'000 + static_cast<double>(ticks(1)) * per_ns + 1e-3);
      last = now;
      limiter.bucket.sent(now, bytes, rate);
    }
    CHECK(worst > 3'000 - 2.0 * bytes);  // the depth is used
  }
}

TEST_CASE("token bucket: the same however often rates are set, and under a scale that stretches the tick") {
  TokenBucketParameters slow;
  slow.tick *= 40;
  Limiter once;
  Limiter often;
  Limiter scaled(slow);
  Random random(11);
  Rate rate = kGigabit;
  Time last = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Time at = once.bucket.release();
    for (Time part = 1; part < 4 && i > 0; ++part) often.bucket.rate_changed(last + (at - last) * part / 4, rate);
    last = at;
    REQUIRE(often.bucket.release() == at);
    REQUIRE(scaled.bucket.release() == 40 * at);
    const auto bytes = static_cast<uint32_t>(64 + random.next() % 1'450);
    if (random.next() % 3 == 0) rate = 40 * static_cast<Rate>(12'500 * (1 + random.next() % 2'000));
    once.bucket.sent(at, bytes, rate);
    often.bucket.sent(at, bytes, rate);
    scaled.bucket.sent(40 * at, bytes, rate / 40);
  }
}
