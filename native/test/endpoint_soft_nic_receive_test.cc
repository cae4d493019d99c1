#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "test/nic_harness.h"
#include "test/wire_fixtures.h"
#include "wire/checksum.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr Rate k1G = 1'000'000'000;

// All ways for a received frame to end, so that each is counted once.
uint64_t accounted(NicHarness& h) {
  const NicCounters& c = h.nic.counters();
  uint64_t sum = c.rx_icrc_encapsulated + c.drop_malformed + c.drop_not_for_us + c.drop_unknown_qp + c.drop_unsupported_opcode +
                 c.rx_punted + c.rp_cnp_handled + c.rp_cnp_ignored + c.rp_cnm_ignored + c.rp_cnm_not_for_us;
  for (int p = 0; p < kPriorities; ++p) sum += h.nic.counters(p).rx_prio_buf_discard;
  for (const QueuePair& qp : h.nic.queue_pairs()) sum += qp.counters.rx_packets + qp.counters.duplicate;
  return sum;
}

}  // namespace

TEST_CASE("soft nic: frames in sequence, missing, duplicate, and messages") {
  NicHarness h(nic_parameters(), {receiver()});
  for (const uint32_t psn : std::array<uint32_t, 8>{0, 1, 2, 5, 6, 4, 6, 7}) h.receive(1'000, h.data(psn));
  const QpCounters& qp = h.nic.queue_pairs()[0].counters;
  CHECK(qp.rx_packets == 6);
  CHECK(qp.rx_bytes == 6'000);
  CHECK(qp.rx_wire_bytes == 6 * (14 + 20 + 8 + 12 + 1'000 + 4 + 24));
  CHECK(qp.rx_messages == 6);
  CHECK(qp.lost == 2);
  CHECK(qp.duplicate == 2);
  CHECK(h.nic.transport_counters().out_of_sequence == 1);
  CHECK(h.nic.transport_counters().duplicate_request == 2);
  CHECK(h.nic.counters().rx_packets == 8);
  CHECK(h.nic.counters(3).rx_prio_packets == 8);
  CHECK(accounted(h) == 8);
}

TEST_CASE("soft nic: the last packets of messages count as messages, with immediate or without") {
  NicHarness h(nic_parameters(), {receiver()});
  uint32_t psn = 0;
  for (uint8_t opcode = 0; opcode <= kOpcodeRcWriteOnlyImmediate; ++opcode) {
    h.receive(1'000, roce(opcode).to(kFirstQpn).psn(psn++).payload(8).bytes());
  }
  CHECK(h.nic.queue_pairs()[0].counters.rx_packets == 12);
  CHECK(h.nic.queue_pairs()[0].counters.rx_messages == 8);
  CHECK(h.nic.transport_counters().rx_write_requests == 3);
}

TEST_CASE("soft nic: what is not served is counted by reason, what is not RoCEv2 is punted") {
  NicHarness h(nic_parameters(), {receiver()});
  h.receive(1, h.data(0, 2, 1));
  CHECK(h.nic.counters().drop_unknown_qp == 1);
  std::vector<uint8_t> bytes = h.data(0);
  bytes[bytes.size() - 10] ^= 1;
  h.receive(1, bytes);
  CHECK(h.nic.counters().rx_icrc_encapsulated == 1);
  bytes = h.data(0);
  bytes[5] ^= 1;  // destination MAC
  h.receive(1, bytes);
  CHECK(h.nic.counters().drop_not_for_us == 1);
  bytes = h.data(0);
  bytes[24] ^= 1;  // IPv4 header
  h.receive(1, bytes);
  CHECK(h.nic.counters().drop_malformed == 1);
  h.receive(1, {1, 2, 3});
  CHECK(h.nic.counters().drop_malformed == 2);
  std::vector<uint8_t> arp(60, 0);
  std::fill_n(arp.begin(), 6, uint8_t{0xff});
  arp[12] = 0x08;
  arp[13] = 0x06;
  CHECK(h.receive(1, arp) == SoftNic::Disposition::punt);
  CHECK(h.nic.counters().rx_punted == 1);
  h.receive(1, roce(kOpcodeRcReadRequest).to(kFirstQpn).bytes());
  CHECK(h.nic.counters().drop_unsupported_opcode == 1);
  CHECK(h.nic.queue_pairs()[0].counters.rx_packets == 0);
  CHECK(h.nic.counters().rx_packets == 7);
  CHECK(accounted(h) == 7);
}

TEST_CASE("soft nic: LLDP is for the slow path where that is asked for, and has no VLAN") {
  for (const bool lldp : {false, true}) {
    NicParameters p = nic_parameters();
    p.vlan = 7;
    p.lldp = lldp;
    NicHarness h(p, {receiver()});
    std::vector<uint8_t> frame(60, 0);
    store_ethernet(frame.data(), {.destination_mac = kLldpAddress, .source_mac = kPeerMac}, kEthertypeLldp);
    CHECK(h.receive(1, frame) == (lldp ? SoftNic::Disposition::punt : SoftNic::Disposition::consumed));
    CHECK(h.nic.counters().rx_punted == (lldp ? 1 : 0));
    CHECK(h.nic.counters().drop_vlan == (lldp ? 0 : 1));
    frame[5] = 0;  // of the nearest customer bridge
    CHECK(h.receive(2, frame) == SoftNic::Disposition::consumed);
    CHECK(h.nic.counters().drop_vlan == (lldp ? 1 : 2));
  }
}

TEST_CASE("soft nic: hostile bytes: random frames and mutated valid ones, each counted once") {
  NicParameters p = nic_parameters(k1G);
  p.receive_buffer = {.size = 20'000, .drain = 500'000'000, .xoff = 10'000, .xon = 5'000};
  NicHarness h(p, {sender(), receiver(0x22), receiver(0x23)}, 256);
  h.on_frame = [](const SentFrame&) {};
  Random random(17);
  uint64_t given = 0;
  Time t = 0;
  for (int i = 0; i < 40'000; ++i) {
    t += static_cast<Time>(random.next() % 20'000);
    std::vector<uint8_t> bytes;
    const uint64_t kind = random.next() % 8;
    if (kind == 0) {
      bytes.resize(random.next() % 200);
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
    } else {
      bytes = kind == 1 ? h.cnp(static_cast<uint32_t>(random.next() % 4))
                        : h.data(static_cast<uint32_t>(random.next()), static_cast<uint8_t>(random.next() & 3),
                                 static_cast<uint32_t>(random.next() % 4), static_cast<uint32_t>(random.next() % 300));
      for (uint64_t flips = random.next() % 4; flips > 0; --flips)
        bytes[random.next() % bytes.size()] ^= static_cast<uint8_t>(1u << random.next() % 8);
      if (random.next() % 8 == 0) bytes.resize(random.next() % bytes.size());
      if (kind == 7 && bytes.size() >= 14) {  // whatever it says, with a right ICRC
        PacketMeta meta;
        if (classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none && meta.bth_offset != 0) {
          const uint32_t end =
              meta.l3_offset + (meta.ip_version == 4 ? 256u * bytes[meta.l3_offset + 2u] + bytes[meta.l3_offset + 3u] : 0);
          if (meta.ip_version == 4) write_icrc(bytes.data(), meta.l3_offset, end - kIcrc);
        }
      }
    }
    ExactFrame exact(bytes);
    PacketMeta meta;
    const Refusal refusal = classify(exact.data(), exact.length(), meta);
    if (meta.kind == FrameKind::pause || meta.kind == FrameKind::pfc || meta.kind == FrameKind::mac_control) continue;
    h.run(t);
    h.nic.receive(t, exact.data(), exact.length(), meta, refusal);
    ++given;
  }
  CHECK(h.nic.counters().rx_packets == given);
  CHECK(accounted(h) == given);
  CHECK(h.nic.counters().rx_icrc_encapsulated > 100);
  CHECK(h.nic.counters().drop_malformed > 100);
  CHECK(h.nic.counters().drop_unknown_qp > 100);
  CHECK(h.nic.counters().rp_cnp_handled > 100);
  for (QueuePair& qp : h.nic.queue_pairs()) qp.parameters.stop = t;
  h.run(t + 10 * kSecond);
  CHECK(h.pool.available() == h.pool.size());
}

TEST_CASE("soft nic: two of them on a link that marks: CNPs sent = handled, every frame accounted for") {
  // Three QPs each way; every 40th data frame is marked on the way; 2 us of delay.
  const auto make = [](uint64_t mac, uint64_t peer) {
    NicParameters p = nic_parameters(k1G);
    p.mac = mac;
    std::vector<QueuePairParameters> queue_pairs;
    for (uint32_t i = 0; i < 3; ++i) {
      QueuePairParameters qp = sender(kFirstQpn + i, i * 10'000);
      qp.path = path_to(peer, mac);
      qp.stop = 50 * kMillisecond;
      queue_pairs.push_back(qp);
    }
    return std::make_unique<NicHarness>(p, queue_pairs);
  };
  std::array<std::unique_ptr<NicHarness>, 2> ends{make(kNicMac, kPeerMac), make(kPeerMac, kNicMac)};
  std::array<std::deque<std::pair<Time, std::vector<uint8_t>>>, 2> links;  // frames to that end
  uint64_t marked = 0;
  uint64_t carried = 0;
  for (size_t end = 0; end < 2; ++end) {
    ends[end]->on_frame = [&, end](const SentFrame& f) {
      std::vector<uint8_t> bytes = f.bytes;
      if (f.meta.kind == FrameKind::roce && ++carried % 40 == 0) {
        bytes[f.meta.l3_offset + 1] |= 3;
        bytes[f.meta.l3_offset + 10] = bytes[f.meta.l3_offset + 11] = 0;
        const uint16_t sum = internet_checksum(bytes.data() + f.meta.l3_offset, 20);
        store_be16(bytes.data() + f.meta.l3_offset + 10, sum);
        ++marked;
      }
      links[1 - end].emplace_back(f.at + 2 * kMicrosecond, bytes);
    };
  }
  for (;;) {
    Time at = kNever;
    for (size_t end = 0; end < 2; ++end) {
      at = std::min(at, ends[end]->nic.next_deadline());
      if (!links[end].empty()) at = std::min(at, links[end].front().first);
    }
    if (at > kSecond) break;
    for (size_t end = 0; end < 2; ++end) {
      ends[end]->run(at);
      while (!links[end].empty() && links[end].front().first <= at) {
        const std::vector<uint8_t> bytes = links[end].front().second;
        links[end].pop_front();
        ends[end]->receive(at, bytes);
      }
    }
  }
  CHECK(marked > 50);
  for (size_t end = 0; end < 2; ++end) {
    NicHarness& here = *ends[end];
    NicHarness& there = *ends[1 - end];
    CHECK(here.nic.counters().np_cnp_sent > 20);
    CHECK(here.nic.counters().np_cnp_sent == there.nic.counters().rp_cnp_handled);
    CHECK(here.nic.counters().tx_packets == there.nic.counters().rx_packets);
    CHECK(here.nic.counters().tx_bytes == there.nic.counters().rx_bytes);
    CHECK(accounted(here) == here.nic.counters().rx_packets);
    for (size_t i = 0; i < 3; ++i) {
      const QpCounters& out = here.nic.queue_pairs()[i].counters;
      const QpCounters& in = there.nic.queue_pairs()[i].counters;
      CHECK(out.tx_packets > 100);
      CHECK(out.tx_packets == in.rx_packets);
      CHECK(out.tx_bytes == in.rx_bytes);
      CHECK(out.tx_wire_bytes == in.rx_wire_bytes);
      CHECK(in.lost == 0);
      CHECK(in.cnp_sent == out.cnp_handled);
    }
    CHECK(here.pool.available() == here.pool.size());
  }
  const NicCounters& a = ends[0]->nic.counters();
  const NicCounters& b = ends[1]->nic.counters();
  CHECK(a.np_ecn_marked_roce_packets + b.np_ecn_marked_roce_packets == marked);
}

TEST_CASE("soft nic: in a VLAN it takes that VLAN's frames, and neither those of others nor untagged ones") {
  NicParameters parameters = nic_parameters();
  parameters.vlan = 100;
  NicHarness h(parameters, {receiver()});
  const auto frame = [](uint32_t psn, uint16_t tci, bool tagged = true) {
    RocePath path = path_to(kNicMac, kPeerMac);
    path.tagged = tagged;
    path.vlan_tci = tci;
    return roce(kOpcodeRcSendOnly).on(path).to(kFirstQpn).psn(psn).payload(8).bytes();
  };
  h.receive(1'000, frame(0, 3 << 13 | 100));
  h.receive(1'000, frame(1, 100));
  h.receive(1'000, frame(2, 101));
  h.receive(1'000, frame(2, 3 << 13));
  h.receive(1'000, frame(2, 0, false));
  CHECK(h.nic.queue_pairs()[0].counters.rx_packets == 2);
  CHECK(h.nic.counters().drop_vlan == 3);
  CHECK(h.nic.counters().drop_unknown_qp == 0);
}
