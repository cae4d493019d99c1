#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "link/serializer.h"
#include "test/switch_harness.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr Time kFrameTime = 8'192;  // 1000 bytes and 24 of overhead at 1 Gb/s
constexpr Time kPfcTime = 672;      // 60 + 24 bytes

std::array<uint16_t, kPriorities> quanta(uint16_t value) {
  std::array<uint16_t, kPriorities> all;
  all.fill(value);
  return all;
}

// Senders 1..n send to host 0 as fast as their links go, and obey PFC frames `delay` after these left the switch.
struct Incast {
  SwitchHarness h;
  Time delay;
  uint64_t frames = 0;

  Incast(const SwitchParameters& parameters, Time delay_) : h(parameters), delay(delay_) {}

  void run(Time until, Time give_up, uint8_t priority = 3) {
    struct Order {
      Time at;
      uint16_t sender;
      uint8_t enable;
      uint8_t xoff;
    };
    const size_t senders = h.device.port_count();
    std::deque<Order> orders;
    std::vector<Time> next_arrival(senders, kFrameTime);
    std::vector<PauseState> pauses(senders);
    size_t seen = 0;
    for (;;) {
      uint16_t sender = 1;
      for (uint16_t s = 2; s < senders; ++s) {
        if (next_arrival[s] < next_arrival[sender]) sender = s;
      }
      const Time arrival = next_arrival[sender];
      const Time order = orders.empty() ? kNever : orders.front().at;
      const Time at = std::min({arrival, order, h.wire.next_deadline()});
      if (at > give_up) break;
      if (at == h.wire.next_deadline()) {
        h.wire.advance(at);
        h.collect();
        for (; seen < h.departures.size(); ++seen) {
          const Departure& d = h.departures[seen];
          if (d.kind == FrameKind::pfc) orders.push_back({d.at + delay, d.port, d.pfc_enable, d.pfc_xoff});
        }
      } else if (at == order) {
        const Order o = orders.front();
        orders.pop_front();
        pauses[o.sender].apply(priority, (o.xoff >> priority & 1) != 0 ? kMaxPauseQuanta : 0, at, k1G);
        // Resumed: it starts a frame now. Paused: the frame that it has begun arrives all the same.
        if ((o.xoff >> priority & 1) == 0 && next_arrival[o.sender] == kNever && at < until)
          next_arrival[o.sender] = at + kFrameTime;
      } else {
        h.send(at, sender, 0, priority);
        ++frames;
        pauses[sender].advance(at);
        next_arrival[sender] = at >= until || pauses[sender].paused_mask() != 0 ? kNever : at + kFrameTime;
      }
      CHECK(h.device.buffer().occupied() >= 0);
    }
  }
};

SwitchParameters incast_parameters(size_t senders) {
  SwitchParameters p = switch_parameters(senders + 1);
  p.ecn_priorities = 0;
  p.buffer.headroom = 10'000;
  p.buffer.total = static_cast<int64_t>(senders + 1) * 8 * 10'000 + 100'000;
  return p;
}

}  // namespace

TEST_CASE("soft switch: an incast is lossless if the senders obey within what the headroom allows, not beyond") {
  // Worst case per sender: the frame on the link back to it when XOFF is decided (none here), the PFC frame, the delay, and
  // the frame that it has begun: 10 000 bytes of headroom are 9 frames of 1000 bytes and one more that arrives meanwhile.
  for (const size_t senders : {2u, 4u, 8u}) {
    CAPTURE(senders);
    Incast fine(incast_parameters(senders), 8 * kFrameTime - kPfcTime);
    fine.run(20 * kMillisecond, kSecond);
    CHECK(fine.h.dropped() == 0);
    CHECK(fine.h.device.counters(1).tx_pfc_frames > 2);
    CHECK(fine.h.device.counters(1, 3).pfc_tx_transitions > 1);
    CHECK(fine.h.at_port(0).size() == fine.frames);
    fine.h.check_drained();
    // The bottleneck never idled: it sent a frame in every frame time.
    const std::vector<Departure> left = fine.h.at_port(0);
    for (size_t i = 1; i < left.size(); ++i) REQUIRE(left[i].at - left[i - 1].at == kFrameTime);

    Incast late(incast_parameters(senders), 30 * kFrameTime);
    late.run(20 * kMillisecond, kSecond);
    CHECK(late.h.dropped() > 0);
    CHECK(late.h.device.counters(1).drop_headroom_full > 0);
    late.h.check_drained();
  }
}

TEST_CASE("soft switch: the same with a static threshold and with lateness headroom") {
  SwitchParameters p = incast_parameters(4);
  p.buffer.threshold = BufferParameters::Threshold::fixed;
  p.buffer.fixed_threshold = 12'000;
  Incast fixed(p, 8 * kFrameTime - kPfcTime);
  fixed.run(20 * kMillisecond, kSecond);
  CHECK(fixed.h.dropped() == 0);
  CHECK(fixed.h.device.counters(2, 3).pg_xoff_room_watermark_bytes <= 10'000);
  CHECK(fixed.h.device.counters(2, 3).pg_watermark_bytes > 12'000);
  fixed.h.check_drained();

  p.buffer.lateness_headroom = 10'000;
  Incast late(p, 14 * kFrameTime);
  late.run(20 * kMillisecond, kSecond);
  CHECK(late.h.dropped() == 0);
  CHECK(late.h.device.counters(2, 3).pg_xoff_room_watermark_bytes > 10'000);
  late.h.check_drained();
}

TEST_CASE("soft switch: without PFC the same incast loses frames, and every one is counted") {
  SwitchParameters p = incast_parameters(4);
  p.pfc_priorities = 0;
  p.buffer.total = 100'000;
  Incast incast(p, 0);
  incast.run(20 * kMillisecond, kSecond);
  CHECK(incast.h.dropped() > 1'000);
  CHECK(incast.h.dropped() + incast.h.at_port(0).size() == incast.frames);
  incast.h.check_drained();
}

TEST_CASE("soft switch: a headroom smaller than a frame loses it, but stops the sender") {
  SwitchParameters p = incast_parameters(2);
  p.buffer.headroom = 500;
  p.buffer.threshold = BufferParameters::Threshold::fixed;
  p.buffer.fixed_threshold = 9'000;
  p.buffer.total = 3 * 8 * 500 + 20'000;
  Incast incast(p, kFrameTime);
  incast.run(5 * kMillisecond, kSecond);
  CHECK(incast.h.device.counters(1).drop_headroom_full > 0);
  CHECK(incast.h.device.counters(1).tx_pfc_frames > 0);
  incast.h.check_drained();
}

TEST_CASE("soft switch: who sends what is longer than threshold and headroom is not stopped for ever") {
  for (const bool fixed : {true, false}) {
    CAPTURE(fixed);
    SwitchParameters p = incast_parameters(2);
    p.buffer.headroom = 1'000;
    p.buffer.threshold = fixed ? BufferParameters::Threshold::fixed : BufferParameters::Threshold::dynamic;
    p.buffer.fixed_threshold = 1'000;
    p.buffer.total = p.buffer.headroom * static_cast<int64_t>(p.ports.size()) * 8 + (fixed ? 20'000 : 1'000);
    p.buffer.xon_offset = 100;
    SwitchHarness h(p);
    for (int i = 0; i < 5; ++i) h.send(i * kFrameTime, 1, 0, 3, 1'200);
    h.run(kSecond);
    CHECK(h.device.counters(1).drop_headroom_full == 5);
    CHECK_FALSE(h.device.pauses().stopped(1, 3));
    h.send(kSecond, 1, 0, 3, 400);
    h.run(2 * kSecond);
    CHECK(h.at_port(0).size() == 1);
    // One that waits behind frames of its own is stopped, and goes on when they have left.
    for (int i = 0; i < 4; ++i) h.send(2 * kSecond, 1, 0, 3, 400);
    h.send(2 * kSecond, 1, 0, 3, 1'200);
    CHECK(h.device.pauses().stopped(1, 3));
    h.run(3 * kSecond);
    CHECK_FALSE(h.device.pauses().stopped(1, 3));
    CHECK(h.at_port(0).size() == 5);
    h.check_drained();
  }
}

TEST_CASE("soft switch: a PFC frame waits for the frame in flight, then goes first") {
  SwitchParameters p = incast_parameters(2);
  p.buffer.threshold = BufferParameters::Threshold::fixed;
  p.buffer.fixed_threshold = 2'500;
  SwitchHarness h(p);
  for (int i = 0; i < 3; ++i) h.send(0, 0, 1, 6);      // keep the link to port 1 busy with strict priority
  for (int i = 0; i < 5; ++i) h.send(1'000, 1, 0, 3);  // the fourth stored frame exceeds the threshold: XOFF to port 1
  h.run(kMillisecond);
  const std::vector<Departure> left = h.at_port(1);
  REQUIRE(left.size() == 5);
  CHECK(left[0].at == kFrameTime);
  CHECK(left[1].kind == FrameKind::pfc);
  CHECK(left[1].at == kFrameTime + kPfcTime);
  CHECK(left[1].pfc_enable == 1 << 3);
  CHECK(left[1].pfc_xoff == 1 << 3);
  CHECK(left[2].at == 2 * kFrameTime + kPfcTime);
  // Five frames: at 1000 one starts, the others follow. XON once nothing is left (2500 < xon_offset): when the last starts.
  CHECK(left[4].kind == FrameKind::pfc);
  CHECK(left[4].pfc_enable == 1 << 3);
  CHECK(left[4].pfc_xoff == 0);
  CHECK(left[4].at == 1'000 + 4 * kFrameTime + kPfcTime);
  CHECK(h.device.counters(1).tx_pfc_frames == 2);
  CHECK(h.device.counters(1, 3).pfc_tx_packets == 2);
  CHECK(h.device.counters(1, 3).pfc_tx_transitions == 1);
  h.check_drained();
}

TEST_CASE("soft switch: a lasting stop is refreshed before it runs out") {
  SwitchParameters p = incast_parameters(2);
  p.buffer.threshold = BufferParameters::Threshold::fixed;
  p.buffer.fixed_threshold = 1'500;
  SwitchHarness h(p);
  h.receive_pfc(0, 0, 1 << 3, quanta(kMaxPauseQuanta));
  for (int i = 0; i < 3; ++i) h.send(0, 1, 0);
  const Time lasts = pause_time(kMaxPauseQuanta, k1G);
  for (int i = 1; i < 4; ++i) {
    h.run(i * lasts / 2);
    h.receive_pfc(i * lasts / 2, 0, 1 << 3, quanta(kMaxPauseQuanta));
  }
  const std::vector<Departure> left = h.at_port(1);
  REQUIRE(left.size() >= 3);
  for (size_t i = 0; i < left.size(); ++i) {
    CHECK(left[i].pfc_xoff == 1 << 3);
    if (i > 0) CHECK(left[i].at - left[i - 1].at <= lasts / 2 + kPfcTime);
  }
  CHECK(h.at_port(0).empty());
  h.receive_pfc(4 * lasts, 0, 1 << 3, quanta(0));
  h.run(5 * lasts);
  CHECK(h.at_port(0).size() == 3);
  h.check_drained();
}

TEST_CASE("soft switch: stopping the peer of an unshaped port neither hangs nor floods it with PFC frames") {
  SwitchParameters p = incast_parameters(2);
  p.ports[1].rate = 0;
  p.buffer.threshold = BufferParameters::Threshold::fixed;
  p.buffer.fixed_threshold = 1'500;
  SwitchHarness h(p, 64);
  for (int i = 0; i < 10; ++i) h.send(0, 1, 0);
  h.run(kMillisecond);
  const std::vector<Departure> left = h.at_port(1);
  CHECK(left.size() >= 2);
  CHECK(left.size() <= 2 + 10 * kFrameTime / 40'000);
  CHECK(left.back().pfc_xoff == 0);
  h.check_drained();
}

TEST_CASE("soft switch: a pause is obeyed at the frame boundary, per priority, and its time is counted") {
  SwitchHarness h(switch_parameters(2));
  for (int i = 0; i < 3; ++i) h.send(0, 0, 1, 3);
  h.send(0, 0, 1, 0);
  h.receive_pfc(1'000, 1, 1 << 3, quanta(100));  // 51.2 us
  h.run(kMillisecond);
  const std::vector<Departure> left = h.at_port(1);
  REQUIRE(left.size() == 4);
  CHECK(left[0].at == kFrameTime);      // begun before
  CHECK(left[1].at == 2 * kFrameTime);  // priority 0 goes on
  CHECK(left[1].psn == 4);
  CHECK(left[2].at == 1'000 + 51'200 + kFrameTime);
  CHECK(left[3].at == 1'000 + 51'200 + 2 * kFrameTime);
  h.device.statistics().settle_counters();
  CHECK(h.device.counters(1, 3).pfc_rx_pause_duration == 51'200);
  CHECK(h.device.counters(1, 3).pfc_rx_packets == 1);
  CHECK(h.device.counters(1).rx_pfc_frames == 1);
  h.check_drained();
}

TEST_CASE("soft switch: XON ends a pause at once; priorities without PFC do not obey; PAUSE stops all") {
  SwitchHarness h(switch_parameters(2));
  h.receive_pfc(0, 1, 0xff, quanta(kMaxPauseQuanta));
  h.send(0, 0, 1, 0);
  h.send(0, 0, 1, 3);
  h.run(20'000);
  h.receive_pfc(20'000, 1, 1 << 3, quanta(0));
  h.run(kMillisecond);
  std::vector<Departure> left = h.at_port(1);
  REQUIRE(left.size() == 2);
  CHECK(left[0].at == kFrameTime);
  CHECK(left[1].at == 20'000 + kFrameTime);
  h.receive_pause(kMillisecond, 1, 1'000);
  h.send(kMillisecond, 0, 1, 6);
  h.run(2 * kMillisecond);
  left = h.at_port(1);
  REQUIRE(left.size() == 3);
  CHECK(left[2].at == kMillisecond + 512'000 + kFrameTime);
  CHECK(h.device.counters(1).rx_pause_frames == 1);
  CHECK(h.device.counters(1).rx_pfc_frames == 2);
  h.check_drained();
}

TEST_CASE("soft switch: coarse, fine and event-by-event advance() give the same departures") {
  const auto scenario = [](int mode) {
    SwitchParameters p = switch_parameters(5);
    p.ports[4].rate = 333'333'333;
    p.pfc_priorities = 1 << 3 | 1 << 4;
    p.red.kmin = 1'000;
    p.red.kmax = 30'000;
    p.red.pmax = 0.5;
    p.buffer.headroom = 3'000;
    p.buffer.total = 5 * 8 * 3'000 + 60'000;
    p.scheduler.weights = {1, 2, 3, 40, 5, 6, 7, 8};
    SwitchHarness h(p, 4'096);
    weir::Random random(11);
    weir::Random polling(static_cast<uint64_t>(mode));
    Time t = 0;
    for (int i = 0; i < 4'000; ++i) {
      const Time next = t + static_cast<Time>(random.next() % 6'000);
      if (mode == 1) h.run(next);
      for (; mode > 1 && t < next; t += 1 + static_cast<Time>(polling.next() % 900)) h.wire.advance(t);
      t = next;
      const uint16_t from = static_cast<uint16_t>(random.next() % 5);
      const uint64_t kind = random.next() % 40;
      if (kind == 0) {
        h.receive_pfc(t, from, static_cast<uint8_t>(random.next()), quanta(static_cast<uint16_t>(random.next() % 200)));
      } else if (kind == 1) {
        h.receive_pause(t, from, static_cast<uint16_t>(random.next() % 100));
      } else {
        h.send(t, from, random.next() % 3 == 0 ? static_cast<uint16_t>(random.next() % 5) : 4,
               static_cast<uint8_t>(random.next() % 8), static_cast<uint32_t>(60 + random.next() % 1'450));
      }
    }
    h.run(t + kSecond);
    h.check_drained();
    std::vector<Departure> ordered = h.departures;
    for (Departure& d : ordered) d.at = 0;  // when collected, which differs
    std::stable_sort(ordered.begin(), ordered.end(), [](const Departure& a, const Departure& b) { return a.port < b.port; });
    return ordered;
  };
  const std::vector<Departure> coarse = scenario(0);
  CHECK(coarse.size() > 1'000);
  CHECK(std::count_if(coarse.begin(), coarse.end(), [](const Departure& d) { return d.kind == FrameKind::pfc; }) > 10);
  CHECK(std::count_if(coarse.begin(), coarse.end(), [](const Departure& d) { return d.ecn == 3; }) > 10);
  for (int mode = 1; mode < 5; ++mode) {
    const bool same = scenario(mode) == coarse;
    CAPTURE(mode);
    CHECK(same);
  }
}

TEST_CASE("soft switch: PFC frames without descriptors are put off, not forgotten") {
  SwitchParameters p = incast_parameters(2);
  p.buffer.threshold = BufferParameters::Threshold::fixed;
  p.buffer.fixed_threshold = 1'500;
  SwitchHarness h(p, 3);
  for (int i = 0; i < 3; ++i) h.send(0, 1, 0);  // takes all three descriptors
  CHECK(h.device.pauses().stopped(1, 3));
  h.run(kMillisecond);
  CHECK(h.device.counters(1).tx_pfc_frames >= 1);
  CHECK(h.at_port(1).back().pfc_xoff == 0);
  CHECK_FALSE(h.device.pauses().stopped(1, 3));
  h.check_drained();
}
