// The state machine of HPCC's sender: sequences worked out by hand from its equations, and what holds for any sequence.
#include <doctest/doctest.h>

#include "base/random.h"
#include "congestion/hpcc_sender.h"

namespace weir {
namespace {

constexpr Rate kLine = 10'000'000'000;
constexpr Time kBase = 10 * kMicrosecond;  // 12500 bytes of the line
constexpr uint32_t kPacket = 1'250;        // 1 us of it

struct Sender {
  explicit Sender(Rate initial = kLine / 2) {
    p.max_stage = 2;
    p.additive_increase = 100;
    p.base_rtt = kBase;
    sender.configure(p, {.line_rate = kLine, .window = 1'000});
    sender.start(0, initial);
    sender.on_sent(0, kPacket);
    telemetry.hops = 1;
    telemetry.hop[0] = {.time = 1'000, .sent = 0, .queue = 0, .rate = kLine};
  }
  // An acknowledgement of so many packets, with what happened at the hop since the one before; four more are in flight.
  double hear(uint32_t packets, uint32_t time, uint32_t bytes, uint32_t queue = 0) {
    telemetry.hop[0].time += time;
    telemetry.hop[0].sent += bytes;
    telemetry.hop[0].queue = queue;
    return tell(packets, time);
  }
  double tell(uint32_t packets, Time after) {
    now += after;
    sender.on_ack({.packets = packets, .in_flight = 4, .arrived = now, .sent = now - kBase, .telemetry = &telemetry});
    return sender.exact_window();
  }

  HpccParameters p;
  HpccSender sender;
  Telemetry telemetry;
  Time now = 1'000;
};

}  // namespace

TEST_CASE("hpcc: the window follows what is in flight on the link, and its reference once in a round-trip time") {
  Sender s;
  CHECK(s.sender.exact_window() == doctest::Approx(6'250));
  CHECK(s.sender.window() == 5);
  CHECK(s.sender.rate() == kLine / 2);
  // Nothing to compare with.
  CHECK(s.tell(1, 0) == doctest::Approx(6'250));
  // The link is in full use without a queue, for a tenth of T: U stays 1.
  CHECK(s.hear(1, 1'000, 1'250, 5'000) == doctest::Approx(6'250 * 0.95 + 100));
  CHECK(s.sender.rate() == 4'830'000'000);
  CHECK(s.sender.window() == 5);
  // The lesser of two queues: 2500 bytes, a fifth of the line's T.
  CHECK(s.hear(1, 1'000, 1'250, 2'500) == doctest::Approx(6'250 * 0.95 / 1.02 + 100));
  CHECK(s.sender.utilisation() == doctest::Approx(1.02));
  // This acknowledges the sixth packet: behind the five that were in flight at the first. 20 us at half rate leave nothing.
  CHECK(s.hear(3, 20'000, 12'500) == doctest::Approx(6'350));
  CHECK(s.sender.utilisation() == doctest::Approx(0.5));
  // That is the reference until the tenth.
  CHECK(s.hear(1, 10'000, 6'250) == doctest::Approx(6'450));
  CHECK(s.hear(1, 10'000, 6'250) == doctest::Approx(6'450));
  CHECK(s.hear(4, 10'000, 6'250) == doctest::Approx(6'450));
  // Two steps up are what there is; then it goes by U.
  CHECK(s.hear(5, 10'000, 6'250) == doctest::Approx(6'450 * 0.95 / 0.5 + 100));
  CHECK(s.hear(5, 10'000, 6'250) == doctest::Approx(12'455));
  CHECK(s.sender.limited());
  // The window is not above what the line holds.
  CHECK(s.hear(5, 10'000, 6'250) == doctest::Approx(12'500));
  CHECK_FALSE(s.sender.limited());
  CHECK(s.sender.window() == 10);
}

TEST_CASE("hpcc: the busiest hop counts, for as long as lies between its stamps") {
  Sender s;
  s.telemetry.hops = 2;
  s.telemetry.hop[1] = {.time = 77, .sent = 5, .queue = 0, .rate = 2 * kLine};
  s.tell(1, 0);
  s.telemetry.hop[1].time += 1'000;
  s.telemetry.hop[1].sent += 1'875;  // 75%
  s.hear(1, 2'000, 1'250);           // 50%
  CHECK(s.sender.utilisation() == doctest::Approx(0.9 + 0.075));
}

TEST_CASE("hpcc: counters wrap; after a pause in which they might have done so unseen, nothing is made of them") {
  Sender s;
  s.telemetry.hop[0].time = s.telemetry.hop[0].sent = UINT32_MAX - 100;
  s.tell(1, 0);
  s.hear(1, 10'000, 6'250);
  CHECK(s.sender.utilisation() == doctest::Approx(0.5));
  const double window = s.sender.exact_window();
  s.now += 3 * kSecond;
  CHECK(s.hear(1, 10'000, 12'500) == window);
  s.hear(1, 10'000, 3'125);
  CHECK(s.sender.utilisation() == doctest::Approx(0.25));
}

TEST_CASE("hpcc: nothing is made of acknowledgements without telemetry, of the same once more, and of another path's first") {
  Sender s;
  s.tell(1, 0);
  const double window = s.sender.exact_window();
  s.sender.on_ack({.packets = 9, .in_flight = 4, .arrived = s.now, .sent = s.now - kBase});
  CHECK(s.sender.exact_window() == window);
  CHECK(s.tell(1, 10) == window);
  s.telemetry.hops = 3;
  CHECK(s.hear(1, 1'000, 1'250) == window);
  s.telemetry.hops = 0;
  CHECK(s.hear(1, 1'000, 1'250) == window);
}

TEST_CASE("hpcc: a reading that cannot be counts as a link in full use") {
  Sender s;
  s.tell(1, 0);
  s.hear(1, 10'000, 4'000'000);
  CHECK(s.sender.utilisation() == doctest::Approx(1));
}

TEST_CASE("hpcc: less than a packet is what the rate is for") {
  Sender s(kLine / 100);
  CHECK(s.sender.exact_window() == doctest::Approx(125));
  CHECK(s.sender.window() == 1);
  CHECK(s.sender.limited());
  CHECK(s.sender.rate() == kLine / 100);
}

TEST_CASE("hpcc: whatever comes, the window is between one byte and what the line holds") {
  Random random(7, 0, 0);
  Sender s;
  for (int i = 0; i < 20'000; ++i) {
    s.telemetry.hops = static_cast<uint32_t>(random.next() % (kMostHops + 1));
    for (TelemetryHop& hop : s.telemetry.hop) {
      hop.time += static_cast<uint32_t>(random.next() % 30'000);
      hop.sent += static_cast<uint32_t>(random.next() % 60'000);
      hop.queue = static_cast<uint32_t>(random.next() % 100'000);
      hop.rate = 2048 + static_cast<Rate>(random.next() % kLine);
    }
    s.tell(static_cast<uint32_t>(random.next() % 4), static_cast<Time>(random.next() % 30'000));
    REQUIRE(s.sender.exact_window() >= 1);
    REQUIRE(s.sender.exact_window() <= 12'500);
    REQUIRE(s.sender.window() >= 1);
    REQUIRE(s.sender.rate() <= kLine);
    REQUIRE(s.sender.rate() > 0);
  }
}

}  // namespace weir
