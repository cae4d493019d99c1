// The state machine of DCTCP's sender: sequences worked out by hand from its equations, and what holds for any sequence.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "congestion/dctcp_sender.h"

namespace weir {
namespace {

constexpr uint32_t kMost = 2'048;
constexpr uint32_t kMany = 1'000'000;  // wanted: there is always more to send

DctcpSender started(const DctcpParameters& parameters, uint32_t most = kMost) {
  DctcpSender sender;
  sender.configure(parameters, {.window = most});
  return sender;
}

// A sender of unlimited data whose whole window is acknowledged, packet by packet, before it is used again.
struct Rounds {
  explicit Rounds(const DctcpParameters& parameters, uint32_t most = kMost) : sender(started(parameters, most)) {}

  // One window of data; the first `marked` of its packets come through congestion. Packets sent meanwhile are in flight.
  void round(uint32_t marked = 0) {
    const uint32_t window = in_flight;
    for (uint32_t i = 0; i < window; ++i) {
      --in_flight;
      sender.on_ack({1, i < marked, in_flight, kMany});
      in_flight = std::max(in_flight, sender.window());
    }
  }

  DctcpSender sender;
  uint32_t in_flight = sender.window();
};

TEST_CASE("dctcp: slow start doubles the window in a round, congestion avoidance adds a packet") {
  Rounds rounds({});
  CHECK(rounds.sender.window() == 10);
  rounds.round();
  CHECK(rounds.sender.window() == 20);
  rounds.round();
  CHECK(rounds.sender.window() == 40);
  // alpha has decayed a little: the first echo comes after three acknowledgements that ended windows.
  const double alpha = rounds.sender.alpha();
  rounds.sender.on_loss({0});  // leaves slow start at 20
  CHECK(rounds.sender.window() == 20);
  CHECK(rounds.sender.alpha() == alpha);
  rounds.in_flight = 20;
  for (uint32_t expected : {20, 21, 22, 23}) {
    rounds.round();
    // Each of 20 acknowledgements adds a little less than 1/20.
    CHECK(rounds.sender.window() >= expected);
    CHECK(rounds.sender.window() <= expected + 1);
  }
}

TEST_CASE("dctcp: alpha is the moving average of the marked share of windows, with g = 2^-shift") {
  for (const uint8_t shift : {0, 1, 4, 8}) {
    CAPTURE(int{shift});
    const double g = std::ldexp(1.0, -shift);
    DctcpSender sender = started({.shift_g = shift, .alpha_on_init = 0.5});
    // The first acknowledgement ends a window: nothing had been sent before.
    sender.on_ack({1, false, 9, kMany});
    double alpha = (1 - g) * 0.5;
    CHECK(sender.alpha() == doctest::Approx(alpha));
    // Nine packets, four of them marked.
    for (uint32_t i = 0; i < 8; ++i) sender.on_ack({1, i % 2 == 1, 9, kMany});
    CHECK(sender.alpha() == doctest::Approx(alpha));
    sender.on_ack({1, false, 9, kMany});
    alpha = (1 - g) * alpha + g * 4 / 9;
    CHECK(sender.alpha() == doctest::Approx(alpha));
    // One acknowledgement of nine.
    sender.on_ack({9, true, 9, kMany});
    alpha = (1 - g) * alpha + g;
    CHECK(sender.alpha() == doctest::Approx(alpha));
  }
}

TEST_CASE("dctcp: the window is cut by alpha / 2, once in a window of data") {
  // alpha stays next to 1/2: 102 x 3/4 is 76.5, and that x 3/4 is 57.4.
  DctcpSender sender = started({.shift_g = 30, .alpha_on_init = 0.5, .initial_window = 102});
  sender.on_ack({1, true, 99, kMany});
  CHECK(sender.window() == 76);
  // 99 packets were in flight at the cut: their echoes change nothing.
  for (uint32_t i = 0; i < 99; ++i) sender.on_ack({1, true, 76, kMany});
  CHECK(sender.window() == 76);
  // The first that was sent behind the cut.
  sender.on_ack({1, true, 76, kMany});
  CHECK(sender.window() == 57);
  CHECK(sender.alpha() == doctest::Approx(0.5));
}

TEST_CASE("dctcp: alpha is brought up to date before it cuts") {
  DctcpSender sender = started({.shift_g = 1, .alpha_on_init = 0, .initial_window = 100});
  sender.on_ack({1, true, 99, kMany});
  CHECK(sender.alpha() == 0.5);
  CHECK(sender.window() == 75);
}

TEST_CASE("dctcp: with every packet marked alpha is 1, and the window halves as TCP's does") {
  Rounds rounds({.initial_window = 64});
  uint32_t expected = 64;
  while (expected > 2) {
    // Every other round is the one behind a cut, in which echoes are of packets sent before.
    rounds.round(kMany);
    expected = std::max(expected / 2, 2u);
    CHECK(rounds.sender.alpha() == 1);
    CHECK(rounds.sender.window() <= expected);
    expected = rounds.sender.window();
    if (expected == 2) break;
  }
  for (int i = 0; i < 10; ++i) rounds.round(kMany);
  CHECK(rounds.sender.window() == 2);
}

TEST_CASE("dctcp: a window that does not hold the sender back does not grow") {
  DctcpSender sender = started({});
  for (int i = 0; i < 1'000; ++i) sender.on_ack({1, false, 4, 5});
  CHECK(sender.window() == 10);
  for (int i = 0; i < 10; ++i) sender.on_ack({1, false, 9, 10 + static_cast<uint32_t>(i)});
  CHECK(sender.window() == 20);
}

TEST_CASE("dctcp: losses halve the window once in a window of data, timeouts leave one packet and slow start") {
  DctcpSender sender = started({.initial_window = 100});
  sender.on_ack({1, false, 100, kMany});
  CHECK(sender.window() == 101);
  sender.on_loss({100});
  CHECK(sender.window() == 50);
  sender.on_loss({100});
  sender.on_ack({100, true, 0, kMany});
  CHECK(sender.window() == 50);
  sender.on_loss({.in_flight = 30, .timeout = true});
  CHECK(sender.window() == 1);
  // Up to 25 by slow start, behind that slowly.
  sender.on_ack({1, false, 1, kMany});
  CHECK(sender.window() == 2);
  sender.on_ack({23, false, 1, kMany});
  CHECK(sender.window() == 25);
  sender.on_ack({25, false, 1, kMany});
  CHECK(sender.window() == 26);
}

TEST_CASE("dctcp: a loss halves the window though an echo has just cut it; behind a loss echoes say nothing new") {
  DctcpSender sender = started({.initial_window = 101});
  sender.on_ack({1, true, 99, kMany});
  CHECK(sender.alpha() == 1);
  CHECK(sender.window() == 50);
  sender.on_loss({99});
  CHECK(sender.window() == 25);
  sender.on_loss({99});
  sender.on_ack({99, true, 1, kMany});
  sender.on_loss({1});
  CHECK(sender.window() == 25);
  // The first that was sent behind the loss.
  sender.on_ack({1, true, 25, kMany});
  CHECK(sender.window() == 12);
  sender.on_loss({25});
  CHECK(sender.window() == 6);
}

// Returns how far slow start goes from here.
uint32_t slow_start_ends(DctcpSender sender) {
  uint32_t window = sender.window();
  for (;;) {
    sender.on_ack({1, false, 0, kMany});
    if (sender.window() == window) return window;
    window = sender.window();
  }
}

TEST_CASE("dctcp: a timeout of what was sent again since the last loss leaves where slow start ends") {
  DctcpSender sender = started({.initial_window = 100});
  sender.on_loss({.in_flight = 100, .timeout = true});
  CHECK(slow_start_ends(sender) == 50);
  for (int again = 0; again < 3; ++again) sender.on_loss({.in_flight = 100, .timeout = true});
  CHECK(sender.window() == 1);
  CHECK(slow_start_ends(sender) == 50);
  // Some of it comes through.
  sender.on_ack({20, false, 80, kMany});
  CHECK(sender.window() == 21);
  sender.on_loss({.in_flight = 80, .timeout = true});
  CHECK(sender.window() == 1);
  CHECK(slow_start_ends(sender) == 50);
  // All of it: what times out now was sent but once.
  sender.on_ack({80, false, 20, kMany});
  CHECK(sender.window() == 50);
  sender.on_loss({.in_flight = 20, .timeout = true});
  CHECK(sender.window() == 1);
  CHECK(slow_start_ends(sender) == 25);
  // Here a loss had packets sent again before.
  DctcpSender other = started({.initial_window = 100});
  other.on_loss({100});
  CHECK(other.window() == 50);
  other.on_loss({.in_flight = 100, .timeout = true});
  CHECK(other.window() == 1);
  CHECK(slow_start_ends(other) == 50);
}

TEST_CASE("dctcp: whatever comes, the window stays between its bounds and alpha between 0 and 1; no echo is no cut") {
  Random random(7, 1);
  for (uint32_t most : {1u, 2u, 16u, kMost}) {
    for (int run = 0; run < 20; ++run) {
      const DctcpParameters parameters{.shift_g = static_cast<uint8_t>(random.next() % 11),
                                       .alpha_on_init = random.uniform(),
                                       .initial_window = 1 + static_cast<uint32_t>(random.next() % 50),
                                       .min_window = 1 + static_cast<uint32_t>(random.next() % 4)};
      DctcpSender sender = started(parameters, most);
      const uint32_t least = std::min(parameters.min_window, most);
      for (int i = 0; i < 2'000; ++i) {
        const uint32_t before = sender.window();
        const auto packets = 1 + static_cast<uint32_t>(random.next() % 7);
        const auto in_flight = static_cast<uint32_t>(random.next() % (sender.window() + 1));
        const double what = random.uniform();
        if (what < 0.005) {
          sender.on_loss({.in_flight = in_flight, .timeout = true});
          CHECK(sender.window() == 1);
        } else if (what < 0.02) {
          sender.on_loss({in_flight});
          CHECK(sender.window() >= std::min(least, before / 2));
        } else {
          const bool echo = random.uniform() < 0.3;
          sender.on_ack({packets, echo, in_flight, static_cast<uint32_t>(random.next() % (2 * sender.window()))});
          if (!echo) CHECK(sender.window() >= before);
          if (echo) CHECK(sender.window() <= std::max(before, least));
        }
        CHECK(sender.window() >= 1);
        CHECK(sender.window() <= most);
        CHECK(sender.alpha() >= 0);
        CHECK(sender.alpha() <= 1);
      }
    }
  }
}

}  // namespace
}  // namespace weir
