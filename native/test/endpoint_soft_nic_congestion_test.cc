#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "base/random.h"
#include "test/nic_harness.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr Rate k1G = 1'000'000'000;

Time cnp_time(const SentFrame& cnp) { return static_cast<Time>(wire_bytes(cnp.packet.length)) * 8; }

}  // namespace

TEST_CASE("soft nic: CNPs as in figure 6: the first at once, then at the ends of windows with marks") {
  NicParameters p = nic_parameters(k1G);
  NicHarness h(p, {receiver(0x4321)});
  uint32_t psn = 0;
  const auto arrive = [&](Time at, uint8_t ecn) {
    h.run(at);
    h.receive(at, h.data(psn++, ecn));
  };
  arrive(5'000, 2);
  arrive(10'000, 3);  // CNP at once, window to 60 000
  arrive(20'000, 3);  // noted
  arrive(30'000, 2);
  h.run(60'000);               // CNP, window to 110 000
  h.run(110'000);              // nothing was marked: idle
  arrive(109'000 + 5'000, 3);  // CNP at once, window to 164 000
  h.run(400'000);
  const std::vector<SentFrame> cnps = h.of_kind(FrameKind::cnp);
  REQUIRE(cnps.size() == 3);
  CHECK(h.frames.size() == 3);
  const Time decided[] = {10'000, 60'000, 114'000};
  for (size_t i = 0; i < 3; ++i) {
    CHECK(cnps[i].at == decided[i] + cnp_time(cnps[i]));
    CHECK(cnps[i].meta.destination_qp == 0x4321);
    CHECK(cnps[i].meta.becn);
    CHECK(cnps[i].meta.ecn == 0);
    CHECK(cnps[i].meta.dscp == 48);
    CHECK(cnps[i].packet.priority == 6);
    CHECK(icrc_ok(cnps[i].bytes.data(), cnps[i].meta));
  }
  CHECK(h.nic.counters().np_cnp_sent == 3);
  CHECK(h.nic.counters().np_ecn_marked_roce_packets == 3);
  CHECK(h.nic.queue_pairs()[0].counters.ecn_marked == 3);
  CHECK(h.nic.queue_pairs()[0].counters.cnp_sent == 3);
  CHECK(h.pool.available() == h.pool.size());
}

TEST_CASE("soft nic: under lasting congestion CNPs of a flow are exactly one interval apart") {
  NicHarness h(nic_parameters(k1G), {receiver(0x31), receiver(0x32), receiver(0x33)});
  uint32_t psn = 0;
  for (Time t = 1'000; t < 2 * kMillisecond; t += 7'000) {
    h.run(t);
    for (uint32_t i = 0; i < 3; ++i) h.receive(t + i * 300, h.data(psn, 3, i));
    ++psn;
  }
  h.run(3 * kMillisecond);
  for (uint32_t qpn = 0x31; qpn <= 0x33; ++qpn) {
    Time previous = -1;
    int count = 0;
    for (const SentFrame& f : h.of_kind(FrameKind::cnp)) {
      if (f.meta.destination_qp != qpn) continue;
      if (previous >= 0) CHECK(std::abs(f.at - previous - 50'000) <= 2 * cnp_time(f));
      previous = f.at;
      ++count;
    }
    CHECK(count == 41);  // 1 + one at the end of each of 40 windows that began by 2 ms
  }
}

TEST_CASE("soft nic: windows stay in order when time was skipped over their ends") {
  NicHarness h(nic_parameters(k1G), {receiver(0x31), receiver(0x32)});
  h.receive(400'000, h.data(0, 3, 0));
  h.receive(410'000, h.data(1, 3, 0));
  h.nic.skip_to(kMillisecond);
  h.receive(420'000, h.data(0, 3, 1));  // read late: is taken at 1 ms, when the first window and its successor are long over
  h.receive(1'020'000, h.data(2, 3, 0));
  h.receive(1'030'000, h.data(1, 3, 1));
  h.run(2 * kMillisecond);
  std::vector<std::pair<uint32_t, Time>> cnps;
  for (const SentFrame& f : h.of_kind(FrameKind::cnp)) cnps.emplace_back(f.meta.destination_qp, f.at - cnp_time(f));
  REQUIRE(cnps.size() == 5);
  CHECK(cnps[3] == std::pair<uint32_t, Time>{0x31, 1'020'000});
  CHECK(cnps[4] == std::pair<uint32_t, Time>{0x32, 1'050'000});
}

TEST_CASE("soft nic: interval 0 answers every marked packet; without DCQCN none") {
  NicParameters p = nic_parameters(k1G);
  p.cnp_interval = 0;
  NicHarness h(p, {receiver()});
  for (uint32_t i = 0; i < 10; ++i) h.receive(1'000, h.data(i, 3));
  h.run(kMillisecond);
  CHECK(h.of_kind(FrameKind::cnp).size() == 10);
  p.congestion = CongestionControl::Parameters{};
  NicHarness off(p, {receiver()});
  off.receive(1'000, off.data(0, 3));
  off.receive(1'000, off.cnp());
  off.run(kMillisecond);
  CHECK(off.frames.empty());
  CHECK(off.nic.counters().np_ecn_marked_roce_packets == 1);
  CHECK(off.nic.counters().rp_cnp_ignored == 1);
}

TEST_CASE("soft nic: a CNP goes ahead of queued data, at the next frame boundary") {
  NicHarness h(nic_parameters(k1G), {sender(0x21), sender(0x22), receiver(0x23)});
  h.run(100'000);
  const Time next_boundary = h.nic.next_deadline();
  h.receive(100'001, h.data(0, 3, 2));
  h.run(200'000);
  const std::vector<SentFrame> cnps = h.of_kind(FrameKind::cnp);
  REQUIRE(cnps.size() == 1);
  CHECK(cnps[0].at == next_boundary + cnp_time(cnps[0]));
}

TEST_CASE("soft nic: a CNP cuts the rate at once and re-times the packet that waits") {
  NicParameters p = nic_parameters(k1G);
  dcqcn(p).alpha_decays_at_line_rate = false;
  NicHarness h(p, {sender()});
  h.run(100'000);
  const size_t before = h.frames.size();
  const Time last = h.frames.back().at;
  CHECK(h.nic.allowed_rate(h.nic.queue_pairs()[0]) == k1G);
  h.receive(100'000, h.cnp());
  CHECK(h.nic.allowed_rate(h.nic.queue_pairs()[0]) == 500'000'000);  // alpha = 1: half
  CHECK(h.nic.counters().rp_cnp_handled == 1);
  CHECK(h.nic.queue_pairs()[0].counters.cnp_handled == 1);
  h.nic.observation().settle_counters();
  CHECK(h.nic.counters().rp_cur_flows == 1);
  h.run(150'000);
  REQUIRE(h.frames.size() > before + 2);
  // The frame in flight ends; the rest of its gap passes at half the rate, and so do whole gaps.
  constexpr Time kGap = (1'082 + 24) * 8;
  CHECK(h.frames[before].at == last + kGap);
  const Time waited = h.frames[before + 1].at - h.frames[before].at;
  CHECK(waited == kGap + (last + kGap - 100'000));
  CHECK(h.frames[before + 2].at - h.frames[before + 1].at == 2 * kGap);
  // 55 us after the cut the timer lifts the rate half-way back.
  h.run(155'001);
  CHECK(h.nic.allowed_rate(h.nic.queue_pairs()[0]) == 750'000'000);
  // CNPs for QPs that do not send, have finished, or do not exist.
  NicHarness idle(nic_parameters(k1G), {receiver()});
  idle.receive(1, idle.cnp());
  idle.receive(1, idle.cnp(1));
  idle.run(kMillisecond);
  CHECK(idle.nic.counters().rp_cnp_handled == 1);
  CHECK(idle.nic.counters().drop_unknown_qp == 1);
  CHECK(idle.frames.empty());
}

TEST_CASE("soft nic: a sample at line rate has alpha where it decays there") {
  NicParameters p = nic_parameters(k1G);
  for (const bool decays : {true, false}) {
    CAPTURE(decays);
    dcqcn(p).alpha_decays_at_line_rate = decays;
    NicHarness h(p, {sender(0x21, 20'000)});
    CHECK(h.nic.observation().sender_sample(0, 0).alpha == 0);  // it has not begun
    h.run(100'000);
    CHECK(h.nic.observation().sender_sample(0, 100'000).alpha == (decays ? 255.0 / 256 : 0));
    CHECK(h.nic.observation().sender_sample(0, 100'000).rate == k1G);
    h.receive(100'000, h.cnp());
    CHECK(h.nic.observation().sender_sample(0, 100'000).alpha ==
          doctest::Approx(decays ? 255.0 / 256 * 255 / 256 + 1.0 / 256 : 1));
  }
}

TEST_CASE("soft nic: PFC stops data at the frame boundary, CNPs still go, XON starts it again") {
  NicHarness h(nic_parameters(k1G), {sender(0x21), receiver(0x22)});
  h.run(100'000);
  const size_t before = h.frames.size();
  h.pfc(100'000, 1 << 3, kMaxPauseQuanta);
  h.run(300'000);
  CHECK(h.frames.size() == before + 1);  // the one in flight
  h.receive(300'000, h.data(0, 3, 1));
  h.run(400'000);
  REQUIRE(h.frames.size() == before + 2);
  CHECK(h.frames.back().meta.kind == FrameKind::cnp);
  h.pfc(400'000, 1 << 3, 0);
  h.run(400'000 + 8'848);
  REQUIRE(h.frames.size() == before + 3);
  CHECK(h.frames.back().at == 400'000 + 8'848);
  h.nic.observation().settle_counters();
  CHECK(h.nic.counters(3).rx_prio_pause == 2);
  CHECK(h.nic.counters(3).rx_prio_pause_duration == 300'000);
  // A pause runs out by itself. Priorities without PFC do not obey. PAUSE stops CNPs as well.
  h.pfc(500'000, 1 << 3, 100);
  h.pfc(500'000, 0xff & ~(1 << 3), kMaxPauseQuanta);
  h.run(kMillisecond);
  CHECK(h.frames.back().at > 900'000);
  CHECK(h.nic.counters(0).rx_prio_pause == 0);
  h.nic.receive_pause(kMillisecond, 1'000);  // 512 us
  h.receive(kMillisecond, h.data(1, 3, 1));
  const size_t paused = h.frames.size();
  h.run(kMillisecond + 511'999);
  CHECK(h.frames.size() <= paused + 1);
  h.run(2 * kMillisecond);
  CHECK(h.frames[paused + 1].meta.kind == FrameKind::cnp);
}

TEST_CASE("soft nic: a slow receiver sends XOFF, refreshes and XON, and never overflows when it is obeyed in time") {
  NicParameters p = nic_parameters(k1G);
  p.receive_buffer = {.size = 40'000, .drain = 100'000'000, .xoff = 20'000, .xon = 10'000};
  NicHarness h(p, {receiver()});
  constexpr Time kFrame = 8'848;
  constexpr Time kDelay = 10 * kMicrosecond;
  PauseState pause;
  Time arrival = kFrame;
  size_t seen = 0;
  uint32_t psn = 0;
  std::deque<std::pair<Time, uint16_t>> orders;
  int64_t most = 0;
  while (true) {
    const Time order = orders.empty() ? kNever : orders.front().first;
    const Time at = std::min({arrival, order, h.nic.next_deadline()});
    if (at > 50 * kMillisecond) break;
    if (at == h.nic.next_deadline()) {
      h.nic.advance(at);
      h.collect();
      for (; seen < h.frames.size(); ++seen) {
        REQUIRE(h.frames[seen].meta.kind == FrameKind::pfc);
        orders.emplace_back(h.frames[seen].at + kDelay,
                            (h.frames[seen].packet.pfc_xoff & 8) != 0 ? kMaxPauseQuanta : uint16_t{0});
      }
    } else if (at == order) {
      pause.apply(3, orders.front().second, at, k1G);
      if (orders.front().second == 0 && arrival == kNever) arrival = at + kFrame;
      orders.pop_front();
    } else {
      h.receive(at, h.data(psn++));
      pause.advance(at);
      arrival = pause.paused_mask() != 0 ? kNever : at + kFrame;
    }
    most = std::max(most, static_cast<int64_t>(h.nic.queue_pairs()[0].counters.rx_packets));
  }
  CHECK(h.nic.counters(3).rx_prio_buf_discard == 0);
  CHECK(h.nic.queue_pairs()[0].counters.lost == 0);
  CHECK(h.nic.counters().tx_pfc_frames > 10);
  CHECK(h.nic.counters(3).tx_prio_pause == h.nic.counters().tx_pfc_frames);
  // The host took all it could: 100 Mb/s of frame bytes in 50 ms, and what is in the buffer.
  const double taken = static_cast<double>(h.nic.counters().rx_bytes);
  CHECK(taken >= 0.99 * 625'000);
  CHECK(taken <= 625'000 + 40'000);
  // XOFF and XON alternate.
  for (size_t i = 0; i < h.frames.size(); ++i) CHECK(h.frames[i].packet.pfc_xoff == (i % 2 == 0 ? 8 : 0));
}

TEST_CASE("soft nic: a receiver that stands still refreshes its XOFF, and an unruly sender overflows it") {
  NicParameters p = nic_parameters(k1G);
  p.receive_buffer = {.size = 10'000, .drain = 1'000, .xoff = 5'000, .xon = 1'000};  // 8 s for a frame
  NicHarness h(p, {receiver()});
  for (uint32_t i = 0; i < 20; ++i) h.receive(i * 9'000, h.data(i));
  h.run(100 * kMillisecond);
  CHECK(h.nic.counters(3).rx_prio_buf_discard == 11);
  CHECK(h.nic.queue_pairs()[0].counters.rx_packets == 9);
  REQUIRE(h.frames.size() >= 5);
  for (size_t i = 1; i < h.frames.size(); ++i) {
    CHECK(h.frames[i].packet.pfc_xoff == 8);
    CHECK(h.frames[i].at - h.frames[i - 1].at < pause_time(kMaxPauseQuanta, k1G));
  }
}

TEST_CASE("soft nic: the number of limited QPs is right at all times, up to when the last is released") {
  NicParameters p = nic_parameters(k1G);
  dcqcn(p).rpg_time_reset = 20'000;
  dcqcn(p).rpg_ai_rate = 40'000'000;
  std::vector<QueuePairParameters> queue_pairs(12, sender());
  for (size_t i = 0; i < queue_pairs.size(); ++i) queue_pairs[i].start = static_cast<Time>(i) * 5'000;
  queue_pairs[3].stop = 300'000;
  NicHarness h(p, queue_pairs);
  h.on_frame = [](const SentFrame&) {};
  const auto limited = [&] {
    uint64_t found = 0;
    for (uint32_t i = 0; i < queue_pairs.size(); ++i) {
      found += h.nic.allowed_rate(h.nic.queue_pairs()[i]) > 0 && h.nic.observation().flow_at(i, h.nic.now()).held ? 1 : 0;
    }
    return found;
  };
  Random random(5);
  uint64_t most = 0;
  for (Time at = 0; at < 600'000; at += 1'000) {
    if (random.next() % 8 == 0) h.receive(at, h.cnp(static_cast<uint32_t>(random.next() % queue_pairs.size())));
    h.run(at);
    REQUIRE(h.nic.counters().rp_cur_flows == limited());
    most = std::max(most, limited());
  }
  CHECK(most > 8);
  for (Time at = 600'000; limited() > 0; at += 100'000) {
    REQUIRE(at < 100'000'000);
    h.run(at);
    REQUIRE(h.nic.counters().rp_cur_flows == limited());
  }
}

TEST_CASE("soft nic: latencies count from the arrival of the first packet that is answered to the turn that answers") {
  CongestionLatencies latencies;
  NicHarness h(nic_parameters(k1G), {receiver()});
  h.nic.measure(&latencies);
  const auto arrive = [&](Time at, Time turn, uint32_t psn) {
    latencies.now = turn;
    h.run(at);
    h.receive(at, h.data(psn, 3));
  };
  arrive(10'000, 17'000, 0);  // CNP in the same turn, 7 us later, and a window to 60 000
  CHECK(latencies.ecn_to_cnp.total() == 1);
  CHECK(latencies.ecn_to_cnp.max() == 7'000);
  arrive(30'000, 30'000, 1);
  arrive(40'000, 40'000, 2);
  CHECK(latencies.ecn_to_cnp.total() == 1);
  latencies.now = 62'000;
  h.run(62'000);  // one CNP for both
  CHECK(latencies.ecn_to_cnp.total() == 2);
  CHECK(latencies.ecn_to_cnp.max() == 32'000);
  CHECK(latencies.cnp_to_rate_change.total() == 0);
}

TEST_CASE("soft nic: a packet that comes behind the end of a window is not what the CNP of that window answers") {
  CongestionLatencies latencies;
  NicHarness h(nic_parameters(k1G), {receiver()});
  h.nic.measure(&latencies);
  const auto arrive = [&](Time at, Time turn, uint32_t psn) {
    latencies.now = turn;
    h.receive(at, h.data(psn, 3));
  };
  arrive(10'000, 10'000, 0);  // CNP at once, and a window to 60 000
  arrive(20'000, 20'000, 1);
  h.nic.skip_to(200'000);
  arrive(50'000, 200'000, 2);  // is taken at 200 000: a CNP for the one before, and a CNP for this
  h.run(210'000);
  CHECK(h.of_kind(FrameKind::cnp).size() == 3);
  CHECK(latencies.ecn_to_cnp.total() == 3);
  CHECK(latencies.ecn_to_cnp.max() == 180'000);
  CHECK(latencies.ecn_to_cnp.weighted_sum() == 180'000 + 150'000);
}

TEST_CASE("soft nic: a CNP's latency ends with the cut: at once, or where there are slots at the end of one") {
  for (const auto form : {DcqcnParameters::Form::paper, DcqcnParameters::Form::slotted}) {
    CongestionLatencies latencies;
    NicParameters p = nic_parameters(k1G);
    dcqcn(p).form = form;
    dcqcn(p).rate_reduce_monitor_period = 4'000;
    NicHarness h(p, {sender()});
    h.nic.measure(&latencies);
    const bool slotted = form == DcqcnParameters::Form::slotted;
    h.run(100'000);
    for (const Time at : {100'000, 101'000}) {
      latencies.now = at + 500;
      h.receive(at, h.cnp());
    }
    // The second is in the slot of the first.
    CHECK(latencies.cnp_to_rate_change.total() == (slotted ? 1 : 2));
    CHECK(latencies.cnp_to_rate_change.max() == (slotted ? 4'000 : 500));
    latencies.now = 140'000;
    h.receive(139'000, h.cnp());
    CHECK(latencies.cnp_to_rate_change.total() == (slotted ? 2 : 3));
    CHECK(latencies.cnp_to_rate_change.max() == (slotted ? 4'000 : 1'000));
  }
}
