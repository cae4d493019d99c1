#include <doctest/doctest.h>

#include <array>
#include <cstdint>

#include "test/shard_harness.h"
#include "test/switch_harness.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr Time kFrameTime = 8'192;   // time of 1000 bytes at 1 Gb/s
constexpr Time kPause = 33'553'920;  // 65,535 quanta at 1 Gb/s
constexpr Time kDetection = 2 * kMillisecond;
constexpr Time kRestoration = 3 * kMillisecond;

SwitchParameters parameters(StormAction action) {
  SwitchParameters p = switch_parameters(3);
  p.ecn_priorities = 0;
  p.buffer.total = 2'000'000;
  p.pfc_watchdog = {.detection_time = kDetection, .restoration_time = kRestoration, .action = action};
  return p;
}

constexpr std::array<uint16_t, kPriorities> quanta(uint16_t of3) {
  std::array<uint16_t, kPriorities> all{};
  all[3] = of3;
  return all;
}

// Host 0 asks to be paused at priority 3, from `at` until `until`, each `step`.
void spew(SwitchHarness& h, Time at, Time until, Time step = kMillisecond / 2) {
  for (; at < until; at += step) {
    h.run(at);
    h.receive_pfc(at, 0, 1 << 3, quanta(kMaxPauseQuanta));
  }
}

SwitchPriorityCounters& queue(SwitchHarness& h) { return h.device.counters(0, 3); }

}  // namespace

TEST_CASE("pfc watchdog: a queue that is paused with frames waiting is in a storm after detection_time, and a quarter at most") {
  SwitchHarness h(parameters(StormAction::alert));
  h.receive_pfc(0, 0, 1 << 3, quanta(kMaxPauseQuanta));
  h.send(100, 1, 0);
  h.run(kDetection - 1);
  CHECK(h.device.pauses().storm_mask(0) == 0);
  h.run(kDetection + kDetection / 4);
  CHECK(h.device.pauses().storm_mask(0) == 1 << 3);
  CHECK(queue(h).pfc_wd_storm_detected == 1);
  // It waits all the same.
  CHECK(h.at_port(0).empty());
  h.run(kPause + kMillisecond);
  CHECK(h.at_port(0).size() == 1);
  CHECK(queue(h).pfc_wd_storm_restored == 1);
  CHECK(h.device.pauses().storm_mask(0) == 0);
  h.check_drained();
}

TEST_CASE(
    "pfc watchdog: congestion is no storm: queues that are paused but send at times, that are empty, or whose pause is short") {
  for (const int kind : {0, 1, 2}) {
    CAPTURE(kind);
    SwitchHarness h(parameters(StormAction::drop));
    for (Time at = kMillisecond; at < 40 * kMillisecond; at += kMillisecond) {
      h.run(at);
      if (kind != 1) h.send(at, 1, 0);
      if (kind == 2) {  // pause of 7,000 quanta, 3.6 ms, but resumed after 1.5
        if (at % (3 * kMillisecond) == 0) h.receive_pfc(at, 0, 1 << 3, quanta(7'000));
        h.run(at + kMillisecond / 2);
        if (at % (3 * kMillisecond) == kMillisecond) h.receive_pfc(at + kMillisecond / 2, 0, 1 << 3, quanta(0));
      } else {
        h.receive_pfc(at, 0, 1 << 3, quanta(kind == 0 ? 1'000 : kMaxPauseQuanta));  // 0.5 ms
      }
    }
    h.run(kSecond);
    CHECK(queue(h).pfc_wd_storm_detected == 0);
    CHECK(h.dropped() == 0);
    h.check_drained();
  }
}

TEST_CASE("pfc watchdog: drop loses what waits and what comes, so that nobody else waits, until pauses have ended") {
  SwitchHarness h(parameters(StormAction::drop));
  // The buffer's threshold pauses host 1 because of host 0; frames of other priorities, and to others, go on.
  for (Time at = 0; at < 20 * kMillisecond; at += 2 * kFrameTime) {
    h.run(at);
    if (at % kMillisecond < 2 * kFrameTime) h.receive_pfc(at, 0, 1 << 3, quanta(kMaxPauseQuanta));
    if (!h.device.pauses().stopped(1, 3)) h.send(at, 1, at % (4 * kFrameTime) == 0 ? 0 : 2);
    h.send(at, 2, 0, 1);
  }
  CHECK(queue(h).pfc_wd_storm_detected == 1);
  CHECK(queue(h).pfc_wd_storm_restored == 0);
  CHECK(h.device.pauses().storm_mask(0) == 1 << 3);
  CHECK(h.device.queue_bytes(0, 3) == 0);
  CHECK(!h.device.pauses().stopped(1, 3));
  CHECK(queue(h).pfc_wd_tx_drop > 500);
  CHECK(queue(h).pfc_wd_tx_drop == h.device.counters(1).drop_pfc_watchdog);
  CHECK(h.dropped() == queue(h).pfc_wd_tx_drop);
  CHECK(queue(h).queue_packets == 0);
  CHECK(h.device.counters(0, 1).queue_packets > 1'000);
  h.check_balance();

  const Time over = 21 * kMillisecond;
  h.receive_pfc(over, 0, 1 << 3, quanta(0));
  h.send(over + 1, 1, 0);  // too early
  h.run(over + kRestoration);
  CHECK(queue(h).pfc_wd_storm_restored == 1);
  const uint64_t lost = h.dropped();
  h.send(over + kRestoration + 1, 1, 0);
  h.run(over + 10 * kMillisecond);
  CHECK(h.dropped() == lost);
  CHECK(queue(h).queue_packets == 1);
  h.check_drained();
}

TEST_CASE("pfc watchdog: forward sends as if nobody had asked for pauses, and loses nothing") {
  SwitchHarness h(parameters(StormAction::forward));
  h.receive_pfc(0, 0, 1 << 3, quanta(kMaxPauseQuanta));
  for (uint32_t i = 0; i < 50; ++i) h.send(100 + i * kFrameTime, 1, 0);
  spew(h, kMillisecond, 10 * kMillisecond);
  CHECK(h.at_port(0).size() >= 49);
  CHECK(queue(h).pfc_wd_storm_detected == 1);
  CHECK(queue(h).pfc_rx_packets == 19);
  h.send(10 * kMillisecond, 1, 0);
  h.run(20 * kMillisecond);
  CHECK(h.at_port(0).size() == 51);
  CHECK(queue(h).pfc_wd_storm_restored == 1);
  // Pauses are obeyed again from then on.
  h.receive_pfc(21 * kMillisecond, 0, 1 << 3, quanta(kMaxPauseQuanta));
  h.send(21 * kMillisecond + 1, 1, 0);
  h.run(22 * kMillisecond);
  CHECK(h.at_port(0).size() == 51);
  h.run(kSecond);
  CHECK(h.dropped() == 0);
  h.check_drained();
}

TEST_CASE("pfc watchdog: a storm that comes back is found again; switched off, it is none any more") {
  SwitchHarness h(parameters(StormAction::drop));
  for (const Time begin : {kMillisecond, 40 * kMillisecond}) {
    spew(h, begin, begin + 1);
    h.send(begin + 1, 1, 0);
    spew(h, begin + kMillisecond, begin + 5 * kMillisecond);
    h.run(begin + 5 * kMillisecond);
    h.receive_pfc(begin + 5 * kMillisecond, 0, 1 << 3, quanta(0));
    h.run(begin + 10 * kMillisecond);
  }
  CHECK(queue(h).pfc_wd_storm_detected == 2);
  CHECK(queue(h).pfc_wd_storm_restored == 2);
  CHECK(h.dropped() == 2);

  spew(h, 60 * kMillisecond, 61 * kMillisecond);
  h.send(61 * kMillisecond, 1, 0);
  spew(h, 62 * kMillisecond, 66 * kMillisecond);
  CHECK(h.device.pauses().storm_mask(0) == 1 << 3);
  SwitchParameters off = parameters(StormAction::drop);
  off.pfc_watchdog.detection_time = 0;
  h.device.reconfigure(off);
  CHECK(h.device.pauses().storm_mask(0) == 0);
  h.send(67 * kMillisecond, 1, 0);
  h.run(kSecond);
  CHECK(queue(h).queue_packets == 1);
  h.check_drained();
}

TEST_CASE("pfc watchdog: 802.3x pauses count, at priorities under PFC") {
  SwitchHarness h(parameters(StormAction::drop));
  h.send(0, 1, 0, 1);
  h.run(kMillisecond);
  for (Time at = kMillisecond; at < 6 * kMillisecond; at += kMillisecond) {
    h.run(at);
    h.receive_pause(at, 0, kMaxPauseQuanta);
    h.send(at + 1, 1, 0, 1);
    h.send(at + 1, 1, 0, 3);
  }
  CHECK(h.device.pauses().storm_mask(0) == 1 << 3);
  CHECK(h.device.queue_bytes(0, 1) == 5'000);
  h.run(kSecond);
  h.check_drained();
}

TEST_CASE("pfc watchdog: a sharded switch loses the same, and counts it where it came in") {
  for (const uint32_t shards : {2u, 3u}) {
    CAPTURE(shards);
    ShardHarness h(parameters(StormAction::drop), shards);
    for (Time at = 0; at < 20 * kMillisecond; at += 100'000) {
      h.run(at);
      if (at % kMillisecond == 0) h.of(0).pauses().receive_pfc(at, 0, 1 << 3, quanta(kMaxPauseQuanta));
      h.send(at, 1, 0);
      h.send(at + 50, 2, 0);
    }
    h.run(20 * kMillisecond);
    SwitchPriorityCounters& storm = h.of(0).counters(0, 3);
    CHECK(storm.pfc_wd_storm_detected == 1);
    CHECK(storm.pfc_wd_tx_drop == 400);
    CHECK(h.of(1).counters(1).drop_pfc_watchdog == 200);
    CHECK(h.of(2).counters(2).drop_pfc_watchdog == 200);
    h.run(kSecond);
    h.check_drained();
  }
}

TEST_CASE("pfc watchdog: drop is of what the peer sends at the priority, too, while the storm lasts") {
  for (const StormAction action : {StormAction::drop, StormAction::forward, StormAction::alert}) {
    SwitchHarness h(parameters(action));
    spew(h, 0, 1);
    h.send(1, 1, 0);
    spew(h, kMillisecond, 5 * kMillisecond);
    REQUIRE(h.device.pauses().storm_mask(0) == 1 << 3);
    for (Time at = 5 * kMillisecond; at < 6 * kMillisecond; at += 100 * kMicrosecond) {
      h.send(at, 0, 2);
      h.send(at, 0, 2, 1);
    }
    h.run(6 * kMillisecond);
    const uint64_t lost = action == StormAction::drop ? 10 : 0;
    CHECK(queue(h).pfc_wd_rx_drop == lost);
    CHECK(h.device.counters(0).drop_pfc_watchdog == lost);
    CHECK(h.at_port(2).size() == 20 - lost);
    h.run(60 * kMillisecond);
    CHECK(h.device.pauses().storm_mask(0) == 0);
    h.send(60 * kMillisecond, 0, 2);
    h.run(kSecond);
    CHECK(h.at_port(2).size() == 21 - lost);
    h.check_drained();
  }
}
