// The state machine of Swift's sender: sequences worked out by hand from its equations, and what holds for any sequence.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/random.h"
#include "congestion/swift_sender.h"

namespace weir {
namespace {

constexpr Rate kLine = 10'000'000'000;
constexpr uint32_t kPacket = 1'000;
constexpr Time kMicro = kMicrosecond;

// A target of 20 us and two hops of 5; flow scaling of 90 us at a window of 1/9 and below, of nothing from 9 on: a = 33.75 us and
// b = -11.25 us.
SwiftParameters parameters() {
  SwiftParameters p;
  p.base_target = 20 * kMicro;
  p.hop_scaling = 5 * kMicro;
  p.hops = 2;
  p.fs_range = 90 * kMicro;
  p.fs_min_cwnd = 1.0 / 9;
  p.fs_max_cwnd = 9;
  return p;
}

struct Sender {
  explicit Sender(const SwiftParameters& given, uint32_t most = 2'000) : p(given) {
    sender.configure(p, {.line_rate = kLine, .window = most});
    sender.start(0, kLine);
    sender.on_sent(0, kPacket);
  }
  // An acknowledgement, long after the last one.
  double hear(Time delay, uint32_t packets = 1) {
    now += kMillisecond;
    sender.on_ack({.packets = packets, .arrived = now, .sent = now - delay});
    return sender.exact_window();
  }

  SwiftParameters p;
  SwiftSender sender;
  Time now = 0;
};

}  // namespace

TEST_CASE("swift: the target grows with hops and as windows get smaller") {
  const Sender s(parameters());
  const SwiftSender& sender = s.sender;
  CHECK(sender.target(9) == doctest::Approx(30e3));
  CHECK(sender.target(100) == doctest::Approx(30e3));
  CHECK(sender.target(4) == doctest::Approx(30e3 + 33'750.0 / 2 - 11'250));
  CHECK(sender.target(1) == doctest::Approx(30e3 + 22'500));
  CHECK(sender.target(1.0 / 9) == doctest::Approx(120e3));
  CHECK(sender.target(0.01) == doctest::Approx(120e3));
}

TEST_CASE(
    "swift: below the target the window grows by a packet in a round-trip time, above it is cut by how far the delay is above") {
  Sender s(parameters());
  CHECK(s.sender.window() == 10);
  CHECK_FALSE(s.sender.limited());
  CHECK(s.hear(29'999) == doctest::Approx(10.1));
  CHECK(s.hear(10 * kMicro, 5) == doctest::Approx(10.1 + 5 / 10.1));
  double window = s.sender.exact_window();
  // 1 - 0.8 (40 - 30) / 40 = 0.8
  CHECK(s.hear(40 * kMicro) == doctest::Approx(window *= 0.8));
  // The target itself is too much already, though by nothing.
  const auto at_target = static_cast<Time>(s.sender.target(window)) + 1;
  CHECK(s.hear(at_target) == doctest::Approx(window).epsilon(1e-4));
  // 1 - 0.8 (1000 - 30.8) / 1000 is less than half.
  window = s.sender.exact_window();
  CHECK(s.hear(kMillisecond) == doctest::Approx(window / 2));
}

TEST_CASE("swift: one decrease in a round-trip time") {
  Sender s(parameters());
  s.hear(60 * kMicro);
  const double once = s.sender.exact_window();
  CHECK(once == doctest::Approx(10 * 0.6));
  const Time cut = s.now;
  const auto ack = [&](Time at, Time delay) { s.sender.on_ack({.packets = 1, .arrived = at, .sent = at - delay}); };
  ack(cut + 99 * kMicro, 100 * kMicro);
  CHECK(s.sender.exact_window() == once);
  s.sender.on_loss({.in_flight = 3, .at = cut + 99 * kMicro});
  CHECK(s.sender.exact_window() == once);
  // Growth is not held off.
  ack(cut + 99 * kMicro, 10 * kMicro);
  CHECK(s.sender.exact_window() == doctest::Approx(once + 1 / once));
  s.sender.on_loss({.in_flight = 3, .at = cut + 110 * kMicro});
  CHECK(s.sender.exact_window() == doctest::Approx((once + 1 / once) / 2));
}

TEST_CASE("swift: below one packet in flight packets are paced a round-trip time over the window apart") {
  SwiftParameters p = parameters();
  p.initial_window = 1;
  Sender s(p);
  CHECK_FALSE(s.sender.limited());
  // Target 52.5 us: 1 - 0.8 (105 - 52.5) / 105 = 0.6.
  CHECK(s.hear(105 * kMicro) == doctest::Approx(0.6));
  CHECK(s.sender.window() == 1);
  REQUIRE(s.sender.limited());
  // 8000 bits each 175 us.
  CHECK(s.sender.rate() == 45'714'285);
  // It grows by ai for each packet.
  CHECK(s.hear(50 * kMicro) == doctest::Approx(1.6));
  CHECK_FALSE(s.sender.limited());
}

TEST_CASE("swift: timeouts in a row leave the least window; acknowledgements of packets sent twice tell no delay") {
  Sender s(parameters());
  double window = 10;
  for (int i = 1; i <= 4; ++i) {
    s.now += kMillisecond;
    s.sender.on_loss({.in_flight = 10, .timeout = true, .at = s.now});
    CHECK(s.sender.exact_window() == doctest::Approx(window /= 2));
  }
  s.sender.on_ack({.packets = 1, .arrived = s.now});
  CHECK(s.sender.exact_window() == doctest::Approx(window));
  for (int i = 1; i <= 5; ++i) {
    CHECK(s.sender.exact_window() > 0.01);
    s.now += kMillisecond;
    s.sender.on_loss({.in_flight = 10, .timeout = true, .at = s.now});
  }
  CHECK(s.sender.exact_window() == 0.01);
}

TEST_CASE("swift: whatever comes, the window stays between its bounds") {
  Random random(3, 1);
  for (const uint32_t most : {1u, 4u, 2'000u}) {
    for (int run = 0; run < 20; ++run) {
      SwiftParameters p = parameters();
      p.ai = 4 * random.uniform();
      p.beta = random.uniform();
      p.max_mdf = random.uniform();
      p.initial_window = 0.1 + 50 * random.uniform();
      p.max_cwnd = 50;
      Sender s(p, most);
      for (int i = 0; i < 2'000; ++i) {
        s.now += static_cast<Time>(random.next() % 30'000);
        const double what = random.uniform();
        if (what < 0.05) {
          s.sender.on_loss({.in_flight = 1, .timeout = what < 0.02, .at = s.now});
        } else {
          const Time delay = static_cast<Time>(random.next() % 200'000) - 100;
          s.sender.on_ack({.packets = 1 + static_cast<uint32_t>(random.next() % 20),
                           .arrived = s.now,
                           .sent = what < 0.1 ? kNever : s.now - delay});
        }
        CHECK(s.sender.exact_window() >= p.min_cwnd);
        CHECK(s.sender.exact_window() <= std::min<double>(most, p.max_cwnd));
        CHECK(s.sender.window() >= 1);
        if (s.sender.limited()) CHECK(s.sender.rate() <= kLine);
      }
    }
  }
}

}  // namespace weir
