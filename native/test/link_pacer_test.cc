#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "base/random.h"
#include "link/pacer.h"

namespace {

using weir::kMicrosecond;
using weir::kSecond;
using weir::Pacer;
using weir::Rate;
using weir::Time;

constexpr Time us(Time value) { return value * kMicrosecond; }

}  // namespace

TEST_CASE("pacer: average rate over a second is within one packet") {
  struct Case {
    Rate rate;
    uint32_t bytes;
  };
  for (const auto& [rate, bytes] :
       {Case{1'000'000, 84}, Case{1'000'000, 9216}, Case{123'456'789, 1082}, Case{999'999'937, 1538}, Case{9'999'999'967, 4154},
        Case{40'000'000'000, 4154}, Case{399'999'999'989, 9216}, Case{400'000'000'000, 9216}}) {
    CAPTURE(rate);
    Pacer pacer;
    pacer.reset(1'000'003);
    uint64_t sent = 0;
    while (pacer.release() < 1'000'003 + kSecond) {
      pacer.sent(pacer.release(), bytes, rate);
      sent += bytes;
    }
    // Packets at 0, gap, 2 gap, ... below 1 s: ceil(1 s / gap) of them.
    const double expected = static_cast<double>(rate) / 8;
    CHECK(static_cast<double>(sent) >= expected - 1);
    CHECK(static_cast<double>(sent) <= expected + bytes);
  }
}

TEST_CASE("pacer: a fraction of a nanosecond is kept") {
  Pacer pacer;
  Time at = 0;
  for (int i = 0; i < 3'000'000; ++i) {
    pacer.sent(at, 1, 3'000'000'000);  // 2 2/3 ns
    at = pacer.release();
  }
  CHECK(at >= 8'000'000);
  CHECK(at <= 8'000'001);
}

TEST_CASE("pacer: at most one packet is made up for") {
  Pacer pacer;  // 1250 B at 1 Gb/s: a gap of 10 us
  pacer.sent(0, 1250, 1'000'000'000);
  CHECK(pacer.release() == us(10));
  pacer.sent(us(15), 1250, 1'000'000'000);  // 5 us late: the schedule stands
  CHECK(pacer.release() == us(20));
  pacer.sent(us(45), 1250, 1'000'000'000);  // 25 us late: one more may go at once
  CHECK(pacer.release() == us(45));
  pacer.sent(us(45), 1250, 1'000'000'000);
  CHECK(pacer.release() == us(55));
  pacer.sent(us(50), 1250, 1'000'000'000);  // ahead of its release: charged
  CHECK(pacer.release() == us(65));
}

TEST_CASE("pacer: what is left of a gap is re-timed") {
  Pacer pacer;
  pacer.sent(0, 1250, 1'000'000'000);
  pacer.rate_changed(us(4), 500'000'000);  // 6 us at 1 Gb/s are 12 us at 0.5 Gb/s
  CHECK(pacer.release() == us(16));
  pacer.rate_changed(us(10), 2'000'000'000);  // 6 us at 0.5 Gb/s are 1.5 us at 2 Gb/s
  CHECK(pacer.release() == 11'500);
  pacer.rate_changed(11'500, 1'000'000);  // released already
  CHECK(pacer.release() == 11'500);
  pacer.rate_changed(us(20), 1'000'000);
  CHECK(pacer.release() == 11'500);

  pacer.reset(us(100));
  CHECK(pacer.release() == us(100));
  pacer.sent(us(100), 1250, 1'000'000);  // 10 ms
  pacer.rate_changed(us(100), 1'000'000'000);
  CHECK(pacer.release() == us(110));
  pacer.rate_changed(us(105), 0);
  CHECK(pacer.release() == us(105));
  pacer.sent(us(105), 1250, 0);
  CHECK(pacer.release() == us(105));
}

TEST_CASE("pacer: re-timing back and forth at one instant changes nothing that matters") {
  Pacer pacer;
  pacer.sent(0, 1250, 1'000'000'000);
  for (int i = 0; i < 1000; ++i) {
    pacer.rate_changed(us(3), 700'000'001);
    pacer.rate_changed(us(3), 1'000'000'000);
  }
  CHECK(std::abs(pacer.release() - us(10)) <= 1);
}

TEST_CASE("pacer: bytes in any window stay below rate * window + 2 packets, however late the sender") {
  weir::Random random(5);
  for (int round = 0; round < 50; ++round) {
    const Rate rate = 1'000'000 + static_cast<Rate>(random.next() % 100'000'000'000);
    const auto bytes = static_cast<uint32_t>(84 + random.next() % 4'000);
    const double gap = bytes * 8e9 / static_cast<double>(rate);
    Pacer pacer;
    Time now = 0;
    Time last = 0;
    double excess = 0;  // the largest, over all windows that end now, of bytes - rate * window
    double worst = 0;
    for (int i = 0; i < 20'000; ++i) {
      now = std::max(now, pacer.release());
      if (random.next() % 4 == 0) now += static_cast<Time>(random.uniform() * 3 * gap);
      excess = std::max(0.0, excess - static_cast<double>(now - last) * static_cast<double>(rate) / 8e9) + bytes;
      worst = std::max(worst, excess);
      REQUIRE(excess <= 2.0 * bytes + static_cast<double>(rate) / 8e9);  // release() is a whole ns
      last = now;
      pacer.sent(now, bytes, rate);
    }
    CHECK(worst > 1.5 * bytes);  // arrears are made up for
  }
}

TEST_CASE("pacer: sends the integral of a rate that changes all the time") {
  weir::Random random(9);
  Pacer pacer;
  const uint32_t bytes = 1082;
  Rate rate = 5'000'000'000;
  Time now = 0;
  double allowed = 0;  // bits
  double sent = 0;
  for (int i = 0; i < 200'000; ++i) {
    const Time change = now + 1 + static_cast<Time>(random.next() % 3'000);
    while (pacer.release() < change) {
      pacer.sent(pacer.release(), bytes, rate);
      sent += bytes * 8;
    }
    allowed += static_cast<double>(change - now) * static_cast<double>(rate) / 1e9;
    now = change;
    rate = 100'000'000 + static_cast<Rate>(random.next() % 10'000'000'000);
    pacer.rate_changed(now, rate);
    REQUIRE(sent >= allowed - 16 * (i + 2));  // a whole ns at the most is lost per change (10 bits)
    REQUIRE(sent <= allowed + bytes * 8 + 1);
  }
  CHECK(std::abs(sent / allowed - 1) < 1e-3);
}
