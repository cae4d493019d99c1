// The state machine of NSCC's sender: sequences worked out by hand from its equations, and what holds for any sequence.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/random.h"
#include "congestion/nscc_sender.h"
#include "test/refusal.h"

namespace weir {
namespace {

constexpr Time kMicro = kMicrosecond;
constexpr Rate kLine = 100'000'000'000;

// 100 Gb/s and 12 us, so that a is 1; packets of which 1.5 times that holds 150; a target of 9 us.
struct Sender {
  explicit Sender(NsccParameters given = {}, Rate line = kLine, uint32_t transport_window = 1'000) : p(given) {
    sender.configure(p, {.line_rate = line, .window = transport_window, .packet_bytes = 1'500});
    sender.start(0, line);
    now = kMillisecond;
  }
  // An acknowledgement of packets that were `delay` in queues, `later` than the last one.
  double hear(Time delay, bool marked = false, uint32_t packets = 1, Time later = 0, uint32_t in_flight = 0) {
    now += later;
    sender.on_ack({.packets = packets, .marked = marked, .in_flight = in_flight, .arrived = now, .sent = now - base - delay});
    return sender.exact_window();
  }
  // Cuts a window that begins at the largest by marks with a delay of 36 us: 0.5 a time, as the average follows.
  void cut_to(double below) {
    while (sender.exact_window() >= below) hear(35 * kMicro, true, 1, 13 * kMicro);
  }

  NsccParameters p;
  NsccSender sender;
  Time now = 0;
  Time base = 12 * kMicro;
};

}  // namespace

TEST_CASE("nscc: the window begins at one and a half times what the round-trip time holds, and that is its most") {
  const Sender s;
  CHECK(s.sender.exact_window() == doctest::Approx(150));
  CHECK(s.sender.window() == 150);
  CHECK_FALSE(s.sender.limited());
  CHECK(Sender({}, 4 * kLine).sender.exact_window() == doctest::Approx(600));
  CHECK(Sender({}, kLine, 64).sender.window() == 64);
  NsccParameters tiny;
  tiny.base_rtt = 10;
  CHECK(Sender(tiny).sender.window() == 1);
}

TEST_CASE("nscc: a shorter round-trip time is the base of what follows, and bounds the window; a longer one is a delay") {
  Sender s;
  s.base = 8 * kMicro;
  s.hear(0);
  CHECK(s.sender.most() == doctest::Approx(100));
  CHECK(s.sender.exact_window() == doctest::Approx(100));
  CHECK(s.sender.average_delay() == 0);
  s.base = 10 * kMicro;
  s.hear(0, true);
  CHECK(s.sender.most() == doctest::Approx(100));
  // 1.25% of 2 us
  CHECK(s.sender.average_delay() == 25);
}

TEST_CASE("nscc: what is trimmed tells of a shorter base round-trip time, but of no delay") {
  Sender s;
  s.sender.on_trimmed({.packets = 1, .in_flight = 20, .at = s.now + 8 * kMicro, .sent = s.now});
  // 150 - 1, of which a base of 8 us leaves 100.
  CHECK(s.sender.most() == doctest::Approx(100));
  CHECK(s.sender.exact_window() == doctest::Approx(100));
  CHECK(s.sender.average_delay() == 150);
  // 1.25% of the 2 us that 10 us are above it: 150 + 1.25% (2'000 - 150)
  s.now += 8 * kMicro;
  s.base = 10 * kMicro;
  s.hear(0, true);
  CHECK(s.sender.average_delay() == 173);
  // A longer one is none, and that of a packet that was sent twice is not known.
  s.sender.on_trimmed({.packets = 1, .in_flight = 20, .at = s.now + 9 * kMicro, .sent = s.now});
  s.sender.on_trimmed({.packets = 1, .in_flight = 20, .at = s.now + 9 * kMicro});
  CHECK(s.sender.most() == doctest::Approx(100));
  // No shorter than 1 ns, and a window has room for one packet.
  s.sender.on_trimmed({.packets = 1, .in_flight = 20, .at = s.now + 9 * kMicro, .sent = s.now + 9 * kMicro});
  CHECK(s.sender.exact_window() == 1);
}

TEST_CASE("nscc: the average of delays takes those above the target without a mark for a quarter of the base") {
  Sender s;
  s.hear(8 * kMicro);
  CHECK(s.sender.average_delay() == 100);
  s.hear(8 * kMicro, true);
  CHECK(s.sender.average_delay() == 198);
  // 198.75 + 1.25% (20'000 - 198.75) = 446.27, and of 3 us: 446.27 + 1.25% (3'000 - 446.27)
  s.hear(20 * kMicro, true);
  CHECK(s.sender.average_delay() == 446);
  s.hear(20 * kMicro);
  CHECK(s.sender.average_delay() == 478);
}

TEST_CASE("nscc: marks with a delay above the target cut the window once in a base round-trip time, by the average delay") {
  NsccParameters p;
  p.delay_gain = 1;
  Sender s(p);
  s.hear(0, true);  // whatever has been so far is adjusted
  const double before = s.sender.exact_window();
  // 1 - 0.8 (12 - 9) / 12 = 0.8
  CHECK(s.hear(12 * kMicro, true, 1, 1) == doctest::Approx(before * 0.8));
  // A base later is not too soon for eta, which is added once in base_rtt; 1 ns after that the next cut may follow.
  CHECK(s.hear(12 * kMicro, true, 1, 12 * kMicro) == doctest::Approx(before * 0.8 + 0.15));
  CHECK(s.hear(12 * kMicro, true, 1, 1) == doctest::Approx((before * 0.8 + 0.15) * 0.8));
  // 1 - 0.8 (30 - 9) / 30 = 0.44 is less than half.
  const double then = s.sender.exact_window();
  CHECK(s.hear(30 * kMicro, true, 1, 13 * kMicro) == doctest::Approx(then / 2 + 0.15));
  // A mark with less delay than the target says only that another way is better.
  const double low = s.sender.exact_window();
  CHECK(s.hear(8 * kMicro, true, 1, 1) == doctest::Approx(low));
}

TEST_CASE("nscc: increases wait for eight packets or a base round-trip time, and are shares of the window") {
  Sender s;
  s.cut_to(60);
  double window = s.hear(3 * kMicro, true, 9, 13 * kMicro);  // adjusts, and nothing waits
  // Proportional: 4 (9 - 3) / 12 = 2 packets for each window that is acknowledged.
  CHECK(s.hear(3 * kMicro, false, 4, 1) == doctest::Approx(window));
  CHECK(s.hear(3 * kMicro, false, 4, 1) == doctest::Approx(window));
  window += 9 * 2 / window;
  CHECK(s.hear(3 * kMicro, false, 1, 1) == doctest::Approx(window));
  // Fair: 5 packets, from the target on, however long the delay is.
  window += 9 * 5 / window;
  CHECK(s.hear(9 * kMicro, false, 9, 1) == doctest::Approx(window));
  window += 9 * 5 / window;
  CHECK(s.hear(30 * kMicro, false, 9, 1) == doctest::Approx(window));
  // One packet, and a round-trip time: with eta.
  window += 1 * 5 / window + 0.15;
  CHECK(s.hear(30 * kMicro, false, 1, 13 * kMicro) == doctest::Approx(window));
}

TEST_CASE("nscc: after a window without delay the window grows by a quarter of what is acknowledged, until there is one") {
  Sender s;
  s.cut_to(40);
  double window = s.hear(5 * kMicro, true, 9, 13 * kMicro);
  const auto whole = static_cast<uint32_t>(window) + 1;
  REQUIRE(whole > 8);
  CHECK(s.hear(999, false, whole, 1) == doctest::Approx(window += whole * 0.25));
  CHECK(s.hear(0, false, 2, 1) == doctest::Approx(window += 0.5));
  // 1 us is a delay: proportional again, 4 (9 - 1) / 12, and so the first after it.
  window += 9 * 4.0 * 8 / 12 / window;
  CHECK(s.hear(1'000, false, 9, 1) == doctest::Approx(window));
  window += 9 * 4.0 * 9 / 12 / window;
  CHECK(s.hear(0, false, 9, 1) == doctest::Approx(window));
}

TEST_CASE("nscc: increases grow with line rate and base round-trip time, and are the same on a slower clock") {
  const auto increased = [](Rate line, Time base, Time slower) {
    NsccParameters p;
    p.base_rtt = base * slower;
    p.reference_rtt *= slower;
    p.no_delay *= slower;
    Sender s(p, line / slower, 10'000);
    s.base = p.base_rtt;
    // The first cut is that of a window of 100; then 3/4 of the target.
    while (s.sender.exact_window() >= 100) s.hear(5 * base * slower, true, 1, 2 * p.base_rtt);
    const double window = s.hear(0, true, 9, 2 * p.base_rtt);
    return (s.hear(base * slower * 9 / 16, false, 9, 1) - window) * window / 9;
  };
  // 4 a 12 us (3/4 - 9/16) / 12 us = 0.75 a
  CHECK(increased(kLine, 12 * kMicro, 1) == doctest::Approx(0.75));
  CHECK(increased(4 * kLine, 12 * kMicro, 1) == doctest::Approx(3));
  CHECK(increased(kLine, 24 * kMicro, 1) == doctest::Approx(3));
  CHECK(increased(4 * kLine, 12 * kMicro, 1'000) == doctest::Approx(3));
}

TEST_CASE("nscc: quick adaptation makes the window what came through, and ignores marks of what was in flight") {
  Sender s;
  s.hear(8 * kMicro);  // a period begins: of 12 + 9 us
  s.hear(60 * kMicro, true, 4, 10 * kMicro);
  CHECK(s.sender.exact_window() > 100);
  // 37 us are above 4 targets; 5 packets in the period are fewer than 150 / 8.
  CHECK(s.hear(37 * kMicro, true, 1, 12 * kMicro, 3) == doctest::Approx(5));
  // Marks of the three that were in flight change nothing, nor does what is not marked cut it.
  CHECK(s.hear(37 * kMicro, true, 1, 1) == doctest::Approx(5));
  CHECK(s.hear(37 * kMicro, true, 1, 1) == doctest::Approx(5));
  // As many packets as there were have been heard of.
  s.hear(37 * kMicro, true, 1, 13 * kMicro);
  s.hear(37 * kMicro, true, 1, 13 * kMicro);
  CHECK(s.sender.exact_window() < 5);
}

TEST_CASE("nscc: where enough comes through, or nothing shows, there is no quick adaptation") {
  for (const bool enough : {true, false}) {
    CAPTURE(enough);
    Sender s;
    s.hear(8 * kMicro);
    s.hear(8 * kMicro, true, enough ? 19 : 4, 10 * kMicro);
    s.hear(enough ? 37 * kMicro : 36 * kMicro, true, 1, 12 * kMicro, 3);
    CHECK(s.sender.exact_window() > 75);
  }
}

TEST_CASE("nscc: what is trimmed takes its part of the window, and has the next period adapt") {
  Sender s;
  s.hear(8 * kMicro, true);
  const double window = s.sender.exact_window();
  s.sender.on_trimmed({.packets = 2, .in_flight = 20, .at = s.now + 1});
  CHECK(s.sender.exact_window() == doctest::Approx(window - 2));
  // 100 + 1.25% (12'000 - 100)
  CHECK(s.sender.average_delay() == 248);
  s.sender.on_trimmed({.packets = 1, .in_flight = 20, .at = s.now + 2});
  CHECK(s.sender.exact_window() == doctest::Approx(window - 3));
  // The period is over; four packets came.
  s.hear(0, false, 4, kMicro);
  s.sender.on_trimmed({.packets = 1, .in_flight = 20, .at = s.now + 22 * kMicro});
  CHECK(s.sender.exact_window() == doctest::Approx(4));
  s.sender.on_trimmed({.packets = 19, .in_flight = 1, .at = s.now + 22 * kMicro + 1});
  CHECK(s.sender.exact_window() == doctest::Approx(4));
  // The twentieth, and one that was sent later.
  s.sender.on_trimmed({.packets = 1, .in_flight = 1, .at = s.now + 22 * kMicro + 2});
  CHECK(s.sender.exact_window() == doctest::Approx(3));
  s.sender.on_trimmed({.packets = 1, .in_flight = 1, .at = s.now + 22 * kMicro + 3});
  CHECK(s.sender.exact_window() == doctest::Approx(2));
}

TEST_CASE("nscc: a loss is as what was trimmed, of one packet; a timeout takes one packet") {
  Sender s;
  s.hear(8 * kMicro, true);
  double window = s.sender.exact_window();
  s.sender.on_loss({.in_flight = 5, .at = s.now + 1});
  CHECK(s.sender.exact_window() == doctest::Approx(window -= 1));
  CHECK(s.sender.average_delay() == 248);
  s.sender.on_loss({.in_flight = 5, .timeout = true, .at = s.now + 100 * kMicro});
  CHECK(s.sender.exact_window() == doctest::Approx(window -= 1));
  CHECK(s.sender.average_delay() == 248);
}

TEST_CASE("nscc: acknowledgements of what was sent twice have the average for their delay") {
  Sender s;
  s.cut_to(100);
  const double window = s.sender.exact_window();
  const Time average = s.sender.average_delay();
  CHECK(average > 9 * kMicro);
  s.sender.on_ack({.packets = 9, .arrived = s.now + 1, .sent = kNever});
  CHECK(s.sender.average_delay() == average);
  CHECK(s.sender.exact_window() == doctest::Approx(window + 9 * 5 / window));
}

TEST_CASE("nscc: any sequence leaves a window between one packet and the most") {
  Random random(7);
  Sender s;
  for (int i = 0; i < 200'000; ++i) {
    const auto draw = random.next();
    const Time delay = static_cast<Time>(draw >> 8 & 0x1ffff);
    switch (draw % 8) {
      case 0:
        s.sender.on_trimmed({.packets = static_cast<uint32_t>(draw >> 32 & 63) + 1, .in_flight = 100, .at = s.now});
        break;
      case 1:
        s.sender.on_loss({.in_flight = 10, .timeout = (draw & 64) != 0, .at = s.now});
        break;
      default:
        s.base = 9 * kMicro + static_cast<Time>(draw >> 40 & 0xfff);
        s.hear(delay, (draw & 128) != 0, static_cast<uint32_t>(draw >> 52 & 7) + 1, static_cast<Time>(draw >> 56) * 10, 50);
    }
    REQUIRE(s.sender.exact_window() >= 1);
    REQUIRE(s.sender.exact_window() <= s.sender.most());
    REQUIRE(s.sender.most() <= 150);
    REQUIRE(s.sender.average_delay() >= 0);
  }
}

TEST_CASE("nscc: parameters out of their ranges are refused") {
  const auto refused = [](auto change) {
    NsccParameters p;
    change(p);
    return test::refusal([&] { NsccSender().configure(p, {.line_rate = kLine, .packet_bytes = 1'500}); });
  };
  CHECK(refused([](NsccParameters&) {}).empty());
  CHECK(refused([](NsccParameters& p) { p.base_rtt = 0; }) == "INVALID_CONFIG");
  CHECK(refused([](NsccParameters& p) { p.gamma = 1.5; }) == "INVALID_CONFIG");
  CHECK(refused([](NsccParameters& p) { p.delay_gain = 0; }) == "INVALID_CONFIG");
  CHECK(refused([](NsccParameters& p) { p.qa_gate = 32; }) == "INVALID_CONFIG");
}

}  // namespace weir
