// A NIC's demands of its peer: by PFC, by 802.3x PAUSE frames, and as a fault; and its answer to trimmed packets.
#include <doctest/doctest.h>

#include <vector>

#include "test/nic_harness.h"
#include "wire/trim.h"

using namespace weir;
using namespace weir::test;

namespace {

NicParameters slow_host() {
  NicParameters p = nic_parameters();
  p.receive_buffer = {.size = 20'000, .drain = 500'000'000, .xoff = 10'000, .xon = 5'000};
  return p;
}

}  // namespace

TEST_CASE("flow control: without PFC a slow host's NIC stops all of its link by PAUSE, and obeys PAUSE alone") {
  NicParameters p = slow_host();
  p.pfc_priorities = 0xff;
  p.link_pause = true;
  NicHarness h(p, {receiver(), sender(0x22)});
  for (uint32_t psn = 0; psn < 14; ++psn) h.receive(psn * 1'000, h.data(psn));
  h.run(100 * kMicrosecond);
  std::vector<SentFrame> pauses = h.of_kind(FrameKind::pause);
  REQUIRE(pauses.size() == 1);
  CHECK(pauses[0].packet.pfc_xoff == 0xff);
  CHECK(pauses[0].packet.pfc_quanta == kMaxPauseQuanta);
  h.run(kMillisecond);
  pauses = h.of_kind(FrameKind::pause);
  REQUIRE(pauses.size() == 2);
  CHECK(pauses[1].packet.pfc_xoff == 0);
  CHECK(h.of_kind(FrameKind::pfc).empty());
  CHECK(h.nic.counters().tx_pause_frames == 2);
  CHECK(h.nic.counters().tx_pfc_frames == 0);
  CHECK(h.nic.counters(3).tx_prio_pause == 2);
  uint8_t bytes[kMinimumFrame];
  uint16_t quanta = 1;
  REQUIRE(build_flow_control(bytes, pauses[1].packet) == kMinimumFrame);
  REQUIRE(parse_pause(bytes, kMinimumFrame, quanta));
  CHECK(quanta == 0);

  h.pfc(kMillisecond, 0xff, kMaxPauseQuanta);
  h.frames.clear();
  h.run(2 * kMillisecond);
  CHECK(h.of_kind(FrameKind::roce).size() > 500);
  h.nic.receive_pause(2 * kMillisecond, kMaxPauseQuanta);
  h.frames.clear();
  h.run(4 * kMillisecond);
  CHECK(h.of_kind(FrameKind::roce).size() <= 1);
}

TEST_CASE(
    "flow control: a storm's frames come before the pause of the one before has ended, whatever its quanta, and end with an "
    "XON") {
  for (const uint16_t quanta : {uint16_t{100}, uint16_t{5'000}, kMaxPauseQuanta}) {
    for (const bool link : {false, true}) {
      CAPTURE(quanta);
      CAPTURE(link);
      NicParameters p = nic_parameters();
      p.pfc_priorities = 0xff;
      p.link_pause = link;
      p.pause_storm = {.priorities = 0x18, .quanta = quanta, .start = kMillisecond, .stop = 20 * kMillisecond};
      NicHarness h(p, {});
      h.run(40 * kMillisecond);
      const std::vector<SentFrame> storm = h.of_kind(link ? FrameKind::pause : FrameKind::pfc);
      REQUIRE(storm.size() > 5);
      CHECK(h.frames.size() == storm.size());
      const Time lasts = pause_time(quanta, p.rate);
      for (size_t i = 0; i + 1 < storm.size(); ++i) {
        CHECK(storm[i].packet.pfc_enable == (link ? 0xff : 0x18));
        CHECK(storm[i].packet.pfc_xoff == (link ? 0xff : 0x18));
        CHECK(storm[i].packet.pfc_quanta == quanta);
        if (i > 0) CHECK(storm[i].at - storm[i - 1].at < lasts);
      }
      CHECK(storm.front().at >= kMillisecond);
      CHECK(storm.back().packet.pfc_xoff == 0);
      CHECK(storm.back().at >= 20 * kMillisecond);
      CHECK(storm.back().at < 20 * kMillisecond + 2 * kMicrosecond);
    }
  }
}

TEST_CASE("trimmed: packets of the DSCP of trimmed ones are counted, and change nothing") {
  NicParameters p = nic_parameters();
  p.trimmed_dscp = 40;
  NicHarness h(p, {receiver()});
  h.receive(0, h.data(0));
  std::vector<uint8_t> bytes = h.data(1, 3);
  Packet packet;
  packet.length = static_cast<uint32_t>(bytes.size());
  REQUIRE(classify(bytes.data(), packet.length, packet.meta) == Refusal::none);
  trim(bytes.data(), packet, kLeastTrimSize, 40);
  bytes.resize(kLeastTrimSize);
  h.receive(1'000, bytes);
  h.receive(2'000, h.data(2));
  h.run(kMillisecond);
  const QpCounters& of = h.nic.queue_pairs()[0].counters;
  CHECK(h.nic.counters().rx_trimmed_roce_packets == 1);
  CHECK(h.nic.counters().rx_icrc_encapsulated == 0);
  CHECK(h.nic.counters().np_cnp_sent == 0);
  CHECK(of.trimmed == 1);
  CHECK(of.rx_packets == 2);
  CHECK(of.lost == 1);

  // A NIC that knows nothing of trimming drops it.
  NicHarness other(nic_parameters(), {receiver()});
  other.receive(0, bytes);
  CHECK(other.nic.counters().rx_trimmed_roce_packets == 0);
  CHECK(other.nic.counters().rx_icrc_encapsulated == 1);
}
