#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "test/nic_harness.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr Rate k1G = 1'000'000'000;

// Frame of a middle packet with 1024 bytes of payload: 14 + 20 + 8 + 12 + 1024 + 4.
constexpr uint32_t kMiddle = 1'082;
constexpr Time kMiddleTime = (kMiddle + 24) * 8;  // at 1 Gb/s

}  // namespace

TEST_CASE("soft nic: frames are valid RoCEv2, in sequence, and say what the QP was told") {
  QueuePairParameters qp = sender(0xabcdef);
  qp.remote_address = 0x1122334455667788;
  qp.remote_key = 0x99aabbcc;
  qp.stream = {
      .operation = Operation::write, .path_mtu = 1'024, .message_bytes = 2'050, .total_bytes = 4'100, .first_psn = 0xff'fffe};
  NicHarness h(nic_parameters(), {qp});
  h.run(kMillisecond);
  REQUIRE(h.frames.size() == 6);
  const uint8_t opcodes[] = {6, 7, 8, 6, 7, 8};
  uint64_t payload = 0;
  for (size_t i = 0; i < 6; ++i) {
    const SentFrame& f = h.frames[i];
    CHECK(f.meta.kind == FrameKind::roce);
    CHECK(icrc_ok(f.bytes.data(), f.meta));
    CHECK(f.meta.opcode == opcodes[i]);
    CHECK(f.meta.psn == ((0xff'fffe + i) & 0xff'ffff));
    CHECK(f.meta.destination_qp == 0xabcdef);
    CHECK(f.meta.destination_mac == kPeerMac);
    CHECK(f.meta.source_mac == kNicMac);
    CHECK(f.meta.dscp == 26);
    CHECK(f.meta.ecn == 2);
    CHECK(f.meta.ack_request == (i % 3 == 2));
    CHECK(f.packet.priority == 3);
    payload += f.meta.payload_length;
    if (i % 3 != 0) continue;
    const Reth reth = load_reth(f.bytes.data() + f.meta.bth_offset + kBthHeader);
    CHECK(reth.virtual_address == 0x1122334455667788);
    CHECK(reth.rkey == 0x99aabbcc);
    CHECK(reth.dma_length == 2'050);
  }
  CHECK(payload == 4'100);
  const QpCounters& counters = h.nic.queue_pairs()[0].counters;
  CHECK(counters.tx_packets == 6);
  CHECK(counters.tx_bytes == 4'100);
  CHECK(h.nic.counters().tx_packets == 6);
  CHECK(h.nic.counters(3).tx_prio_packets == 6);
  CHECK(h.nic.allowed_rate(h.nic.queue_pairs()[0]) == 0);
  CHECK(h.pool.available() == h.pool.size());
  CHECK(h.nic.next_deadline() == kNever);
}

TEST_CASE("soft nic: 1000 QPs with rates of their own on one link, each within 1% or one packet in a second") {
  // Rates 0.1 to 18.9 Mb/s, together 9.5 Gb/s of a 10 Gb/s link.
  std::vector<QueuePairParameters> queue_pairs;
  for (int i = 0; i < 1'000; ++i) {
    QueuePairParameters qp = sender(static_cast<uint32_t>(0x21 + i));
    qp.rate_cap = 100'000 + 18'800 * i;
    queue_pairs.push_back(qp);
  }
  NicParameters p = nic_parameters();
  NicHarness h(p, queue_pairs);
  std::vector<Time> last(1'000, -1);
  std::vector<Time> widest(1'000, 0);
  std::vector<Time> narrowest(1'000, kNever);
  double deviation = 0;
  uint64_t gaps = 0;
  std::vector<double> deviations;
  h.on_frame = [&](const SentFrame& f) {
    const size_t i = f.meta.destination_qp - 0x21;
    // All QPs start at 0, and it takes a millisecond until each has sent its first.
    if (last[i] >= 10 * kMillisecond && f.meta.opcode == kOpcodeRcWriteMiddle) {
      const Time gap = f.at - last[i];
      widest[i] = std::max(widest[i], gap);
      narrowest[i] = std::min(narrowest[i], gap);
      const double ideal = (kMiddle + 24) * 8e9 / static_cast<double>(queue_pairs[i].rate_cap);
      const double off = static_cast<double>(gap) - ideal;
      deviation += off < 0 ? -off : off;
      deviations.push_back(off < 0 ? -off : off);
      ++gaps;
    }
    last[i] = f.at;
  };
  h.run(kSecond);
  double total = 0;
  double worst = 0;
  for (size_t i = 0; i < 1'000; ++i) {
    const double sent = static_cast<double>(h.nic.queue_pairs()[i].counters.tx_wire_bytes) * 8;
    const double allowed = static_cast<double>(queue_pairs[i].rate_cap);
    const double packet = (kMiddle + 16 + 24) * 8;
    CAPTURE(i);
    CHECK(sent <= allowed * 1.01 + packet);
    CHECK(sent >= allowed * 0.99 - packet);
    worst = std::max(worst, (sent > allowed ? sent - allowed : allowed - sent) / allowed);
    total += sent;
  }
  CHECK(total == doctest::Approx(9.4906e9).epsilon(0.001));
  std::sort(deviations.begin(), deviations.end());
  MESSAGE("gaps " << gaps << ", |gap - ideal| mean " << deviation / static_cast<double>(gaps) << " ns, p50 "
                  << deviations[deviations.size() / 2] << ", p99 " << deviations[deviations.size() * 99 / 100] << ", max "
                  << deviations.back() << " ns; worst rate error " << worst);
  // A packet waits for the link at most while those that fell due before it are sent.
  CHECK(deviations[deviations.size() * 99 / 100] < 150'000);
  CHECK(h.pool.available() == h.pool.size() - 1);  // one on the link
}

TEST_CASE("soft nic: start and stop are exact, and the line is free for who stays") {
  QueuePairParameters a = sender(0x21, 10'000);
  a.stop = 1'000'000;
  a.stream.operation = Operation::send;
  NicHarness h(nic_parameters(k1G), {a});
  CHECK(h.nic.next_deadline() == 10'000);
  h.run(2 * kMillisecond);
  REQUIRE(!h.frames.empty());
  CHECK(h.frames.front().at == 10'000 + kMiddleTime);
  // Packets start at 10 000 + i * 8848 < 1 000 000.
  CHECK(h.frames.size() == 112);
  CHECK(h.frames.back().at == 10'000 + 112 * kMiddleTime);
  CHECK(h.nic.next_deadline() == kNever);
  CHECK(h.pool.available() == h.pool.size());
}

TEST_CASE("soft nic: a QP whose stop comes while it is paused sends nothing when the pause ends") {
  QueuePairParameters qp = sender();
  qp.stop = kMillisecond;
  NicHarness h(nic_parameters(k1G), {qp});
  h.pfc(500'000, 1 << 3, kMaxPauseQuanta);
  h.run(1'500'000);
  const size_t before = h.frames.size();
  CHECK(before > 50);
  h.pfc(1'500'000, 1 << 3, 0);
  h.run(3 * kMillisecond);
  CHECK(h.frames.size() == before);
  CHECK(h.nic.allowed_rate(h.nic.queue_pairs()[0]) == 0);
}

TEST_CASE("soft nic: a sample at the stop of a QP has the rate until then; of one that has sent everything, none") {
  QueuePairParameters stopped = sender(0x21);
  stopped.rate_cap = 10'000;  // it waits for its second packet then
  stopped.stop = kMillisecond;
  QueuePairParameters done = sender(0x22);
  done.stop = kMillisecond;
  done.stream.total_bytes = 4'096;
  NicHarness h(nic_parameters(k1G), {stopped, done});
  h.run(kMillisecond);
  CHECK(h.nic.allowed_rate(h.nic.queue_pairs()[0]) == 0);
  CHECK(h.nic.observation().sender_sample(0, kMillisecond).rate == 10'000);
  CHECK(h.nic.observation().sender_sample(1, kMillisecond).rate == 0);
  h.run(2 * kMillisecond);
  CHECK(h.nic.observation().sender_sample(0, 2 * kMillisecond).rate == 0);
}

TEST_CASE("soft nic: a slow QP that has stopped is inactive from its stop on, not from its next packet") {
  QueuePairParameters slow = sender(0x21);
  slow.rate_cap = 10'000;  // a packet every 0.9 s
  slow.stop = kMillisecond;
  QueuePairParameters next = sender(0x22, 2 * kMillisecond);
  NicParameters p = nic_parameters(k1G);
  p.initial_rate = 1'000'000;
  NicHarness h(p, {slow, next});
  h.run(3 * kMillisecond);
  CHECK(h.nic.allowed_rate(h.nic.queue_pairs()[0]) == 0);
  CHECK(h.nic.allowed_rate(h.nic.queue_pairs()[1]) == k1G);  // alone, so at line rate
}

TEST_CASE("soft nic: line-rate start only for a QP that is alone") {
  NicParameters p = nic_parameters(k1G);
  p.initial_rate = 100'000'000;
  NicHarness h(p, {sender(0x21), sender(0x22, 1'000), sender(0x23, 2'000)});
  h.run(5'000);
  CHECK(h.nic.allowed_rate(h.nic.queue_pairs()[0]) == k1G);
  CHECK(h.nic.allowed_rate(h.nic.queue_pairs()[1]) == 100'000'000);
  CHECK(h.nic.allowed_rate(h.nic.queue_pairs()[2]) == 100'000'000);
  p.line_rate_start = false;
  NicHarness limited(p, {sender(0x21)});
  limited.run(5'000);
  CHECK(limited.nic.allowed_rate(limited.nic.queue_pairs()[0]) == 100'000'000);
}

TEST_CASE("soft nic: QPs of one priority take turns, priorities share by weight in link bytes") {
  NicParameters p = nic_parameters(k1G);
  p.congestion = CongestionControl::Parameters{};
  p.scheduler.weights = {1, 1, 1, 1, 1, 1, 1, 1};
  QueuePairParameters small = sender(0x21);
  small.stream.path_mtu = 256;
  QueuePairParameters large = sender(0x22);
  large.stream.path_mtu = 4'096;
  large.priority = 0;
  QueuePairParameters twin = sender(0x23);
  twin.stream.path_mtu = 256;
  NicHarness h(p, {small, large, twin});
  h.run(100 * kMillisecond);
  const auto wire = [&](size_t i) { return static_cast<double>(h.nic.queue_pairs()[i].counters.tx_wire_bytes); };
  CHECK(wire(0) == doctest::Approx(wire(2)).epsilon(0.001));
  CHECK(wire(1) == doctest::Approx(wire(0) + wire(2)).epsilon(0.01));
  CHECK((wire(0) + wire(1) + wire(2)) * 8 == doctest::Approx(1e8).epsilon(0.001));
}

TEST_CASE("soft nic: skip_to drops what was due during a stall, but for the arrears") {
  for (const Time arrears : {Time{0}, 100 * kMicrosecond, kMillisecond}) {
    CAPTURE(arrears);
    std::vector<QueuePairParameters> queue_pairs;
    for (uint32_t i = 0; i < 10; ++i) {
      queue_pairs.push_back(sender(0x21 + i));
      queue_pairs.back().rate_cap = 50'000'000;
    }
    NicHarness h(nic_parameters(k1G), queue_pairs);
    h.run(10 * kMillisecond);
    uint64_t before = 0;
    for (const QueuePair& qp : h.nic.queue_pairs()) before += qp.counters.tx_wire_bytes;
    const Time back = 60 * kMillisecond;
    h.nic.skip_to(back - arrears);
    h.run(back);
    uint64_t after = 0;
    for (const QueuePair& qp : h.nic.queue_pairs()) after += qp.counters.tx_wire_bytes;
    // The pacer makes up for one packet per QP; a window's ends count for another.
    const double allowed = 500e6 * static_cast<double>(arrears) / 8e9 + 2 * 10 * 1'122;
    CHECK(static_cast<double>(after - before) <= allowed);
    if (arrears > 0) CHECK(after - before >= 10 * 1'106);
    // Afterwards it goes on at its rate.
    h.run(back + 100 * kMillisecond);
    uint64_t later = 0;
    for (const QueuePair& qp : h.nic.queue_pairs()) later += qp.counters.tx_wire_bytes;
    CHECK(static_cast<double>(later - after) == doctest::Approx(6.25e6).epsilon(0.005));
  }
}

TEST_CASE("soft nic: without descriptors sending is put off and counted") {
  NicHarness h(nic_parameters(k1G), {sender()}, 2);
  const PacketId one = h.pool.allocate();
  const PacketId two = h.pool.allocate();
  h.run(100 * kMicrosecond);
  CHECK(h.frames.empty());
  CHECK(h.nic.counters().tx_no_descriptor > 0);
  h.pool.free(one);
  h.pool.free(two);
  h.run(kMillisecond);
  CHECK(h.frames.size() > 90);
}

TEST_CASE("soft nic: coarse, fine and event-by-event advance() send the same frames") {
  const auto scenario = [](Time step) {
    std::vector<QueuePairParameters> queue_pairs;
    for (uint32_t i = 0; i < 20; ++i) {
      queue_pairs.push_back(sender(0x21 + i, i * 3'000));
      queue_pairs.back().rate_cap = 10'000'000 + 7'000'000 * static_cast<Rate>(i);
      queue_pairs.back().priority = i % 3 == 0 ? 3 : 0;
    }
    NicHarness h(nic_parameters(k1G), queue_pairs, 4'096);
    Time t = 0;
    for (int i = 0; i < 40; ++i) {
      const Time next = (i + 1) * 123'457;
      if (step == 0) h.run(next);
      for (; step > 0 && t < next; t += step) h.nic.advance(t);
      h.receive(next, h.cnp(static_cast<uint32_t>(i % 20)));
      if (i % 5 == 0) h.pfc(next, 1 << 3, 200);
    }
    h.nic.advance(6 * kMillisecond);
    h.collect();
    std::vector<std::pair<uint32_t, uint32_t>> order;
    for (const SentFrame& f : h.frames) order.emplace_back(f.meta.destination_qp, f.meta.psn);
    return order;
  };
  const auto exact = scenario(0);
  CHECK(exact.size() > 300);
  for (const Time step : {Time{1'000}, Time{7'919}, Time{200'000}}) {
    const bool same = scenario(step) == exact;
    CAPTURE(step);
    CHECK(same);
  }
}

TEST_CASE("soft nic: a frame that comes late to a NIC that was late does not end its sending") {
  NicHarness h(nic_parameters(1'000'000'000), {sender(0x21), sender(0x22), receiver(0x23)});
  h.run(100'000);
  h.nic.skip_to(500'000);                 // beyond the frame on the link, with another that waits
  give(h.nic, 100'001, h.data(0, 2, 9));  // for nobody
  h.collect();
  const size_t before = h.frames.size();
  h.run(1'000'000);
  // A frame of 1,082 bytes takes 8.85 us.
  CHECK(h.frames.size() > before + 50);
}

TEST_CASE("soft nic: nobody comes for a queue pair whose time is within the frame on the link, and turns are the same") {
  QueuePairParameters slow = sender(0x21);
  slow.rate_cap = 450'000'000;
  QueuePairParameters fast = sender(0x22);
  slow.stream = fast.stream = {.operation = Operation::send, .path_mtu = 1'024, .message_bytes = 4'000'000};
  NicHarness h(nic_parameters(k1G), {slow, fast});
  h.run(4 * kMiddleTime);
  // The slow one's second packet is on the link, 1.8 frames late as others came first; its third may go after 4.4 frames.
  CHECK(h.nic.next_deadline() == 5 * kMiddleTime);
  h.run(7 * kMiddleTime);
  const std::vector<uint32_t> expected{0x21, 0x22, 0x22, 0x22, 0x21, 0x22, 0x21};
  REQUIRE(h.frames.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(h.frames[i].meta.destination_qp == expected[i]);
    CHECK(h.frames[i].at == static_cast<Time>(i + 1) * kMiddleTime);
  }
}
