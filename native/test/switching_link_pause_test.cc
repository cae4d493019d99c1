// 802.3x in place of PFC: a switch that stops its peers as a whole.
#include <doctest/doctest.h>

#include <array>

#include "test/switch_harness.h"

using namespace weir;
using namespace weir::test;

namespace {

SwitchParameters parameters() {
  SwitchParameters p = switch_parameters(3);
  p.ecn_priorities = 0;
  p.buffer.total = 1'000'000;
  p.pfc_priorities = 0xff;
  p.link_pause = true;
  return p;
}

}  // namespace

TEST_CASE(
    "link pause: a peer is stopped by PAUSE and goes on by one of no time, whatever its frames' priority; nothing is lost") {
  SwitchHarness h(parameters());
  // Hosts 1 and 2 send to host 0, twice what its link carries, at priorities 0 and 6; they obey.
  std::array<bool, 3> stopped{};
  size_t seen = 0;
  for (Time at = 0; at < 20 * kMillisecond; at += 8'192) {
    h.run(at);
    for (; seen < h.departures.size(); ++seen) {
      const Departure& d = h.departures[seen];
      if (d.kind == FrameKind::pause) stopped[d.port] = d.pfc_xoff != 0;
    }
    if (!stopped[1]) h.send(at, 1, 0, 0);
    if (!stopped[2]) h.send(at, 2, 0, 6);
  }
  h.run(kSecond);
  CHECK(h.dropped() == 0);
  // One that stops lets the other have the link, which may never have to then.
  CHECK(h.device.counters(1).tx_pause_frames + h.device.counters(2).tx_pause_frames >= 2);
  for (const uint16_t port : {uint16_t{1}, uint16_t{2}}) {
    CHECK(h.device.counters(port).tx_pfc_frames == 0);
    if (h.device.counters(port).tx_pause_frames == 0) continue;
    CHECK(h.device.counters(port, 3).pfc_tx_packets == h.device.counters(port).tx_pause_frames);
    // The last word is that it may go on.
    CHECK(h.at_port(port).back().kind == FrameKind::pause);
    CHECK(h.at_port(port).back().pfc_xoff == 0);
  }
  CHECK(h.device.counters(1, 0).pfc_tx_transitions + h.device.counters(2, 6).pfc_tx_transitions >= 1);
  h.check_drained();
}

TEST_CASE("link pause: PAUSE is obeyed at all priorities, PFC at none; a reload to PFC sends PFC frames from then on") {
  SwitchHarness h(parameters());
  std::array<uint16_t, kPriorities> all;
  all.fill(kMaxPauseQuanta);
  h.receive_pfc(0, 0, 0xff, all);
  h.send(1, 1, 0, 3);
  h.run(kMillisecond);
  CHECK(h.at_port(0).size() == 1);
  h.receive_pause(kMillisecond, 0, kMaxPauseQuanta);
  h.send(kMillisecond + 1, 1, 0, 3);
  h.send(kMillisecond + 1, 1, 0, 6);
  h.run(2 * kMillisecond);
  CHECK(h.at_port(0).size() == 1);
  SwitchParameters p = parameters();
  p.link_pause = false;
  p.pfc_priorities = 1 << 3;
  h.device.reconfigure(p);
  h.receive_pause(2 * kMillisecond, 0, kMaxPauseQuanta);
  for (uint32_t i = 0; i < 900; ++i) h.send(2 * kMillisecond + i, 1, 0, 3);
  h.run(3 * kMillisecond);
  CHECK(h.device.counters(1).tx_pfc_frames > 0);
  CHECK(h.device.counters(1).tx_pause_frames == 0);
  h.run(kSecond);
  h.check_drained();
}

TEST_CASE("link pause: all priorities are lossless, or there is none") {
  SwitchParameters p = parameters();
  check(p);
  p.pfc_priorities = 1 << 3;
  CHECK_THROWS(check(p));
}
