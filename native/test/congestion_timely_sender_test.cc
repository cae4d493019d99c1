// The state machine of TIMELY's sender: sequences worked out by hand from its equations, and what holds for any sequence.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/random.h"
#include "congestion/timely_sender.h"

namespace weir {
namespace {

constexpr Rate kLine = 10'000'000'000;
constexpr uint32_t kPacket = 1'000;  // on the link: 800 ns
constexpr Time kPacketTime = 800;
constexpr Time kMicro = kMicrosecond;

// Steps of 10 Mb/s, thresholds of 50 and 500 us, gradients by 20 us, a completion event each 10 packets.
TimelyParameters parameters(bool patched = false) {
  TimelyParameters p;
  p.patched = patched;
  p.alpha = 0.5;
  p.beta = patched ? 0.008 : 0.8;
  p.segment = 10 * kPacket;
  return p;
}

struct Sender {
  explicit Sender(const TimelyParameters& given, Rate rate = 1'000'000'000) : p(given) {
    sender.configure(p, {.line_rate = kLine});
    sender.start(0, rate);
    sender.on_sent(0, kPacket);
  }
  // A completion event, long enough after the last one: what is acknowledged was sent `rtt` and its own time on the link before.
  double hear(Time rtt, uint32_t packets = 10) {
    now += kMillisecond;
    sender.on_ack({.packets = packets, .arrived = now, .sent = now - rtt - kPacketTime});
    return sender.exact_rate();
  }

  TimelyParameters p;
  TimelySender sender;
  Time now = 0;
};

}  // namespace

TEST_CASE("timely: below t_low the rate grows by delta, above t_high it is cut by how far the RTT is above") {
  Sender s(parameters());
  CHECK(s.hear(49'999) == 1'010e6);
  CHECK(s.hear(10'000) == 1'020e6);
  // 1 - 0.8 (1 - 500 / 625) = 0.84
  CHECK(s.hear(625 * kMicro) == doctest::Approx(1'020e6 * 0.84));
  CHECK(s.sender.limited());
  CHECK(s.sender.rate() == 856'800'000);
}

TEST_CASE("timely: between the thresholds the gradient of RTTs says how much to take, and that of falling ones to add") {
  Sender s(parameters());
  // The first RTT has no predecessor: gradient 0 adds a step.
  CHECK(s.hear(100 * kMicro) == 1'010e6);
  // rtt_diff: 0.5 x 4 = 2 us, gradient 0.1: 1 - 0.8 x 0.1.
  CHECK(s.hear(104 * kMicro) == doctest::Approx(1'010e6 * 0.92));
  CHECK(s.sender.gradient() == doctest::Approx(0.1));
  // rtt_diff: 0.5 x 2 - 0.5 x 4 = -1 us: four steps of delta, then hyper-active ones of five.
  double rate = 1'010e6 * 0.92;
  Time rtt = 100 * kMicro;
  for (int event = 1; event <= 7; ++event) {
    rate += (event >= 5 ? 5 : 1) * 10e6;
    CHECK(s.hear(rtt) == doctest::Approx(rate));
    rtt -= 4 * kMicro;
  }
  // Falling RTTs count below t_low, too, where a step is always delta; one that rises ends the row.
  CHECK(s.hear(40 * kMicro) == doctest::Approx(rate += 10e6));
  CHECK(s.sender.gradient() < 0);
  CHECK(s.hear(75 * kMicro) < rate);
  rate = s.sender.exact_rate();
  CHECK(s.hear(51 * kMicro) == doctest::Approx(rate + 10e6));
}

TEST_CASE("timely: no update takes more than half, and the rate stays between its floor and the line") {
  Sender s(parameters());
  s.hear(60 * kMicro);
  // rtt_diff 100 us, gradient 5: 1 - 0.8 x 5 is below 0.
  CHECK(s.hear(260 * kMicro) == doctest::Approx(505e6));
  for (int i = 0; i < 20; ++i) s.hear((i % 2 == 0 ? 60 : 400) * kMicro + i * 20 * kMicro);
  CHECK(s.sender.exact_rate() >= 10e6);
  Sender fast(parameters(), kLine - 5'000'000);
  CHECK(fast.sender.limited());
  CHECK(fast.hear(20 * kMicro) == static_cast<double>(kLine));
  CHECK_FALSE(fast.sender.limited());
}

TEST_CASE("timely: a completion event takes a segment, the least RTT since the last one, and packets that were sent once") {
  Sender s(parameters());
  TimelySender& t = s.sender;
  const auto ack = [&](uint32_t packets, Time at, bool known = true) {
    t.on_ack({.packets = packets, .arrived = at, .sent = known ? at - 30 * kMicro : kNever});
    return t.exact_rate();
  };
  CHECK(ack(9, 25 * kMicro) == 1'000e6);
  CHECK(ack(1, 26 * kMicro) == 1'010e6);
  // A segment, but 19 us after the last event.
  CHECK(ack(10, 45 * kMicro) == 1'010e6);
  CHECK(ack(1, 46 * kMicro) == 1'020e6);
  // Nothing is known of when it was sent.
  CHECK(ack(10, 80 * kMicro, false) == 1'020e6);
  CHECK(ack(1, 81 * kMicro) == 1'030e6);
}

TEST_CASE("patched timely: between the thresholds the weight of the gradient balances growth and the distance from t_low") {
  Sender s(parameters(true));
  // Gradient 0: w = 1/2, e = (75 - 50) / 50 = 1/2: 5 Mb/s more, and 0.002 less.
  CHECK(s.hear(75 * kMicro) == doctest::Approx(5e6 + 1'000e6 * 0.998));
  double rate = s.sender.exact_rate();
  // rtt_diff 2 us, gradient 0.1: w = 0.7, e = 0.58.
  CHECK(s.hear(79 * kMicro) == doctest::Approx(3e6 + rate * (1 - 0.008 * 0.7 * 0.58)));
  rate = s.sender.exact_rate();
  // rtt_diff 1 - 10 = -9 us, gradient -0.45: w = 0, as below -1/4.
  CHECK(s.hear(59 * kMicro) == doctest::Approx(rate + 10e6));
  rate = s.sender.exact_rate();
  // rtt_diff -4.5 + 20 = 15.5 us: w = 1, e = 0.98.
  CHECK(s.hear(99 * kMicro) == doctest::Approx(rate * (1 - 0.008 * 0.98)));
  // The thresholds are TIMELY's.
  rate = s.sender.exact_rate();
  CHECK(s.hear(40 * kMicro) == doctest::Approx(rate + 10e6));
  rate = s.sender.exact_rate();
  CHECK(s.hear(1'000 * kMicro) == doctest::Approx(rate * (1 - 0.008 * 0.5)));
}

// While RTTs stay as they are, TIMELY has rates grow whatever they are: any proportion of them is as good as any other. Patched,
// the one rate at which it stays is C / N.
TEST_CASE("patched timely: at the RTT of its fixed point all rates come to the fair one, and TIMELY's do not") {
  for (const uint32_t flows : {2u, 8u, 40u}) {
    CAPTURE(flows);
    const double fair = static_cast<double>(kLine) / flows;
    const TimelyParameters p = parameters(true);
    const double rtt =
        static_cast<double>(p.t_low) * (1 + flows * static_cast<double>(p.delta) / (p.beta * static_cast<double>(kLine)));
    for (const double part : {0.2, 1.0, 1.8}) {
      Sender patched(p, static_cast<Rate>(part * fair));
      Sender plain(parameters(), static_cast<Rate>(part * fair));
      for (int i = 0; i < 20'000; ++i) patched.hear(static_cast<Time>(rtt));
      CHECK(patched.sender.exact_rate() == doctest::Approx(fair).epsilon(1e-3));
      plain.hear(static_cast<Time>(rtt));
      CHECK(plain.sender.exact_rate() == doctest::Approx(part * fair + 10e6));
    }
  }
}

TEST_CASE("timely: whatever comes, the rate stays between its bounds") {
  Random random(5, 2);
  for (const bool patched : {false, true}) {
    for (int run = 0; run < 20; ++run) {
      TimelyParameters p = parameters(patched);
      p.alpha = 0.01 + 0.99 * random.uniform();
      p.beta = random.uniform();
      p.segment = random.next() % 20'000;
      Sender s(p, 1 + random.next() % kLine);
      for (int i = 0; i < 2'000; ++i) {
        s.now += static_cast<Time>(random.next() % 100'000);
        // Some say that they came before they were sent, as clocks might.
        const Time sent = random.uniform() < 0.05 ? kNever : s.now - static_cast<Time>(random.next() % 2'000'000) + 1'000;
        const double before = s.sender.exact_rate();
        s.sender.on_ack({.packets = 1 + static_cast<uint32_t>(random.next() % 20), .arrived = s.now, .sent = sent});
        CHECK(s.sender.exact_rate() >= std::min(before, std::max(before / 2, 10e6)));
        CHECK(s.sender.exact_rate() <= static_cast<double>(kLine));
        s.sender.on_loss({.in_flight = 3, .timeout = true, .at = s.now});
      }
    }
  }
}

}  // namespace weir
