// CNPs of a NIC with queue pairs of applications: which packets are answered with one, and where it goes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "test/verbs_harness.h"
#include "wire/ip.h"

namespace weir::test {
namespace {

struct Cnp {
  Time at;
  uint64_t mac;
  uint8_t ip[16];
  uint32_t qpn;
  uint16_t partition_key;
  PacketMeta meta;
};

// The NIC under test is the left one; what it sends goes nowhere but is looked at.
struct Victim {
  Victim() {
    two.spoil = [this](bool, std::vector<uint8_t>& bytes) {
      Cnp cnp{};
      REQUIRE(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), cnp.meta) == Refusal::none);
      if (cnp.meta.kind != FrameKind::cnp) return false;
      cnp.at = two.now();
      cnp.mac = cnp.meta.destination_mac;
      CHECK(cnp.meta.source_mac == kNicMac);
      const uint32_t length = ip_address_length(cnp.meta.ip_version);
      std::memcpy(cnp.ip, bytes.data() + cnp.meta.l3_offset + ip_source_offset(cnp.meta.ip_version) + length, length);
      cnp.qpn = cnp.meta.destination_qp;
      cnp.partition_key = load_bth(bytes.data() + cnp.meta.bth_offset).partition_key;
      cnps.push_back(cnp);
      return false;
    };
  }
  WireNic& nic() { return two.left().nic; }
  void receive(const std::vector<uint8_t>& bytes) { give(nic(), nic().now(), bytes); }
  // A marked datagram.
  void datagram(uint32_t to, uint32_t source_qp = 5, uint8_t host = 9, uint32_t queue_key = kQueueKey,
                uint16_t partition_key = kDefaultPartitionKey) {
    receive(roce(kOpcodeUdSendOnly)
                .on(way_from(host))
                .to(to)
                .partition_key(partition_key)
                .deth({queue_key, source_qp})
                .payload(8)
                .bytes());
  }
  static RocePath way_from(uint8_t host) {
    RocePath path = path_to(kNicMac, 0x020000000000 + host);
    path.ecn = 3;
    return path;
  }
  uint32_t reliable(QueuePairState up_to, uint16_t partition_key = kDefaultPartitionKey) {
    const uint32_t qpn = nic().applications().create({});
    QueueAttributes a;
    a.domain = 1;
    a.remote_qpn = 0x77;
    a.partition_key = partition_key;
    for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
      if (to <= up_to) nic().applications().modify(qpn, to, a, path_to(kPeerMac, kNicMac), 3, 0);
    }
    return qpn;
  }
  void marked_send(uint32_t to, uint16_t partition_key = kDefaultPartitionKey) {
    receive(roce(kOpcodeRcSendOnly).to(to).partition_key(partition_key).ecn(3).payload(8).bytes());
  }

  Two two;
  std::vector<Cnp> cnps;
};

TEST_CASE("notification: a marked datagram's CNP goes to who sent it, at its MAC and IP address and source QP") {
  Victim v;
  const uint32_t qpn = v.two.datagrams(v.two.left());
  v.datagram(qpn, 0x123456, 9);
  v.two.run(10 * kMicrosecond);
  REQUIRE(v.cnps.size() == 1);
  CHECK(v.cnps[0].mac == 0x020000000009);
  const uint8_t ip[4] = {10, 0, 0, 9};
  CHECK(std::memcmp(v.cnps[0].ip, ip, 4) == 0);
  CHECK(v.cnps[0].qpn == 0x123456);
  CHECK(v.cnps[0].partition_key == kDefaultPartitionKey);
  CHECK(v.nic().counters().np_ecn_marked_roce_packets == 1);
  CHECK(v.nic().counters().np_cnp_sent == 1);
  CHECK(v.two.pair_of(v.two.left(), qpn).counters.cnp_sent == 1);
}

TEST_CASE("notification: over IPv6 and with a VLAN tag the CNP takes the same way back") {
  Two two;
  for (const bool tagged : {false, true}) {
    NicParameters p = Two::parameters(kNicMac, [](NicParameters& q) { q.addresses = {{6, {0xfd, 1}}}; });
    NicEnd end(p);
    const uint32_t qpn = two.datagrams(end);
    RocePath path = Victim::way_from(9);
    path.ip_version = 6;
    path.tagged = tagged;
    path.vlan_tci = 3 << 13 | 42;
    std::memset(path.source_ip, 0, 16);
    std::memset(path.destination_ip, 0, 16);
    path.source_ip[0] = path.destination_ip[0] = 0xfd;
    path.source_ip[1] = 2;
    path.destination_ip[1] = 1;
    const std::vector<uint8_t> bytes = roce(kOpcodeUdSendOnly).on(path).to(qpn).deth({kQueueKey, 7}).payload(8).bytes();
    give(end.nic, 0, bytes);
    end.nic.advance(10 * kMicrosecond);
    const PacketId id = end.nic.transmit();
    REQUIRE(id != kNoPacket);
    PacketMeta meta;
    REQUIRE(classify(end.pool.data(id), end.pool[id].length, meta) == Refusal::none);
    CHECK(meta.kind == FrameKind::cnp);
    CHECK(meta.destination_mac == 0x020000000009);
    CHECK(meta.ip_version == 6);
    CHECK(end.pool.data(id)[meta.l3_offset + 24 + 1] == 2);
    CHECK(end.pool.data(id)[meta.l3_offset + 8 + 1] == 1);
    CHECK(meta.tagged == tagged);
    if (tagged) CHECK(meta.vlan() == 42);
    if (tagged) CHECK(meta.pcp() == 6);
    CHECK(meta.destination_qp == 7);
  }
}

TEST_CASE("notification: each sender of datagrams is a flow of its own, with CNPs N apart") {
  Victim v;
  const uint32_t qpn = v.two.datagrams(v.two.left());
  // Two hosts, one of them with two queue pairs, all marked each microsecond for 1 ms.
  for (Time at = 0; at < kMillisecond; at += kMicrosecond) {
    v.two.run(at);
    v.nic().advance(at);
    v.datagram(qpn, 5, 9);
    v.datagram(qpn, 6, 9);
    v.datagram(qpn, 5, 10);
  }
  v.two.run(2 * kMillisecond);
  std::map<std::pair<uint64_t, uint32_t>, std::vector<Time>> flows;
  for (const Cnp& cnp : v.cnps) flows[{cnp.mac, cnp.qpn}].push_back(cnp.at);
  CHECK(flows.size() == 3);
  for (const auto& [flow, times] : flows) {
    CHECK(times.size() == 21);
    for (size_t i = 1; i < times.size(); ++i) CHECK(times[i] - times[i - 1] >= 49 * kMicrosecond);
  }
}

TEST_CASE("notification: more senders at a time than there are places are told apart in the counters") {
  Victim v;
  const uint32_t qpn = v.two.datagrams(v.two.left());
  for (uint32_t i = 0; i < NotificationPoints::kSenders + 10; ++i) v.datagram(qpn, i);
  CHECK(v.nic().counters().np_cnp_unsent == 10);
  v.two.run(kMillisecond);
  CHECK(v.cnps.size() == NotificationPoints::kSenders);
  // All places are free again.
  v.nic().advance(kMillisecond);
  for (uint32_t i = 0; i < NotificationPoints::kSenders; ++i) v.datagram(qpn, 1'000 + i);
  CHECK(v.nic().counters().np_cnp_unsent == 10);
  // Nobody is at a group address.
  RocePath path = Victim::way_from(9);
  path.source_mac = 0x0100'5e00'0001;
  v.two.run(2 * kMillisecond);
  v.receive(roce(kOpcodeUdSendOnly).on(path).to(qpn).deth({kQueueKey, 5}).payload(8).bytes());
  CHECK(v.nic().counters().np_cnp_unsent == 11);
}

TEST_CASE("notification: packets that are not valid are not answered, nor counted as marked") {
  Victim v;
  const uint32_t datagrams = v.two.datagrams(v.two.left());
  v.datagram(datagrams, 5, 9, kQueueKey + 1);
  CHECK(v.nic().transport_counters().drop_queue_key == 1);
  v.datagram(datagrams, 5, 9, kQueueKey, 0x8001);
  CHECK(v.nic().transport_counters().drop_partition_key == 1);
  uint64_t wrong_state = 0;
  for (const QueuePairState state : {QueuePairState::reset, QueuePairState::init}) {
    const uint32_t qpn = v.reliable(state);
    v.marked_send(qpn);
    CHECK(v.nic().transport_counters().drop_wrong_state == ++wrong_state);
    CHECK(v.nic().applications().destroy(qpn));
  }
  const uint32_t qpn = v.reliable(QueuePairState::rtr);
  v.marked_send(qpn, 0x8001);
  CHECK(v.nic().transport_counters().drop_partition_key == 2);
  v.two.run(kMillisecond);
  CHECK(v.cnps.empty());
  CHECK(v.nic().counters().np_ecn_marked_roce_packets == 0);
  CHECK(v.nic().counters().np_cnp_sent == 0);
}

TEST_CASE("notification: a reliable connection answers from RTR on, with the partition key of what was marked") {
  Victim v;
  const uint32_t qpn = v.reliable(QueuePairState::rtr, 0x8123);
  v.marked_send(qpn, 0x0123);  // from a limited member
  v.two.run(kMillisecond);
  REQUIRE(v.cnps.size() == 1);
  CHECK(v.cnps[0].mac == kPeerMac);
  CHECK(v.cnps[0].qpn == 0x77);
  CHECK(v.cnps[0].partition_key == 0x0123);
}

TEST_CASE("notification: CNPs to a queue pair that cannot send change nothing; to datagrams they cut the queue pair's rate") {
  Victim v;
  const auto cnp = [&](uint32_t to) { v.receive(roce_cnp(to)); };
  cnp(v.reliable(QueuePairState::reset));
  cnp(v.reliable(QueuePairState::init));
  CHECK(v.nic().counters().rp_cnp_handled == 0);
  CHECK(v.nic().transport_counters().drop_wrong_state == 2);

  std::vector<uint8_t> out(1'000);
  SendWork w = work(WorkOpcode::send, out, v.two.left().register_memory(out), out, 0);
  w.address_handle = v.nic().applications().create_address_handle(path_to(kPeerMac, kNicMac));
  w.remote_qpn = 0x88;
  const uint32_t qpn = v.two.datagrams(v.two.left());
  v.nic().applications().post_send(qpn, w);
  v.two.run(kMicrosecond);
  cnp(qpn);
  CHECK(v.nic().counters().rp_cnp_handled == 1);
  CHECK(v.nic().allowed_rate(v.two.pair_of(v.two.left(), qpn)) == v.nic().line_rate() / 2);
}

TEST_CASE("notification: nothing is owed for a queue pair that was destroyed or reset") {
  for (const bool destroyed : {false, true}) {
    for (const bool datagram : {false, true}) {
      Victim v;
      const uint32_t qpn = datagram ? v.two.datagrams(v.two.left()) : v.reliable(QueuePairState::rts);
      const auto marked = [&] { datagram ? v.datagram(qpn) : v.marked_send(qpn); };
      marked();
      v.two.run(20 * kMicrosecond);
      v.nic().advance(20 * kMicrosecond);
      CHECK(v.cnps.size() == 1);
      marked();  // the window's end would send another
      if (destroyed) {
        CHECK(v.nic().applications().destroy(qpn));
      } else {
        v.nic().applications().modify(qpn, QueuePairState::reset, {}, {}, 3, 0);
      }
      v.two.run(kMillisecond);
      CHECK(v.cnps.size() == 1);
      // Its place can be had at once.
      if (destroyed) {
        for (uint32_t i = 0; i < kPlaces; ++i) CHECK(v.nic().applications().create({}) != 0);
      }
    }
  }
}

TEST_CASE("notification: a shorter interval holds at once, for windows that are open too") {
  for (const Time shorter : {50 * kMicrosecond, Time{0}}) {
    NicParameters p = nic_parameters();
    p.cnp_interval = 50 * kMillisecond;
    const std::vector<QueuePairParameters> pairs{receiver(0x21), receiver(0x22)};
    NicHarness h(p, pairs);
    h.receive(0, h.data(0, 3, 0));
    h.receive(10 * kMicrosecond, h.data(0, 3, 1));
    h.run(20 * kMicrosecond);
    CHECK(h.of_kind(FrameKind::cnp).size() == 2);
    p.cnp_interval = shorter;
    h.nic.reconfigure(p, pairs);
    uint32_t psn = 1;
    for (Time at = 100 * kMicrosecond; at < 600 * kMicrosecond; at += 5 * kMicrosecond) {
      h.receive(at, h.data(psn, 3, 0));
      h.receive(at, h.data(psn++, 3, 1));
    }
    h.run(kMillisecond);
    // Both for 500 us: 100 packets each, or a CNP each 50 us.
    const size_t cnps = h.of_kind(FrameKind::cnp).size() - 2;
    CHECK(cnps >= (shorter > 0 ? 20 : 200));
    CHECK(cnps <= (shorter > 0 ? 22 : 200));
  }
}

TEST_CASE("notification: without DCQCN what was owed is owed no more") {
  NicParameters p = nic_parameters();
  const std::vector<QueuePairParameters> pairs{receiver()};
  NicHarness h(p, pairs);
  h.receive(0, h.data(0, 3));
  h.receive(10 * kMicrosecond, h.data(1, 3));
  p.congestion = CongestionControl::Parameters{};
  h.nic.reconfigure(p, pairs);
  h.run(kMillisecond);
  CHECK(h.of_kind(FrameKind::cnp).size() == 1);
}

// Section 3.3 of the DCQCN paper: "one per 1-5 microseconds", so 10 to 20 congested flows have theirs each 50 us, and more do
// not.
TEST_CASE("notification: a NIC's limit of CNPs is kept by all flows together, in turn; what it withholds is counted") {
  constexpr uint32_t kFlows = 40;
  constexpr Time kEach = 5 * kMicrosecond, kLast = 10 * kMillisecond;
  for (const uint32_t flows : {10u, kFlows}) {
    NicParameters p = nic_parameters();
    p.cnp_nic_interval = kEach;
    NicHarness h(p, std::vector<QueuePairParameters>(flows, receiver()), 256);
    uint32_t psn = 0;
    for (Time at = 0; at < kLast; at += 20 * kMicrosecond, ++psn) {
      for (uint32_t flow = 0; flow < flows; ++flow) h.receive(at, h.data(psn, 3, flow, 64));
    }
    h.run(kLast);
    const std::vector<SentFrame> cnps = h.of_kind(FrameKind::cnp);
    std::vector<uint64_t> of(flows);
    for (size_t i = 0; i < cnps.size(); ++i) {
      if (i > 0) CHECK(cnps[i].at - cnps[i - 1].at >= kEach);
    }
    for (uint32_t i = 0; i < flows; ++i) of[i] = h.nic.queue_pairs()[i].counters.cnp_sent;
    const auto [least, most] = std::minmax_element(of.begin(), of.end());
    CHECK(*most - *least <= 2);
    const uint64_t windows = flows * static_cast<uint64_t>(kLast / (50 * kMicrosecond));
    if (flows == 10) {
      CHECK(cnps.size() + flows >= windows);
      CHECK(h.nic.counters().np_cnp_withheld == 0);
    } else {
      CHECK(cnps.size() <= static_cast<size_t>(kLast / kEach) + 1);
      CHECK(cnps.size() + 2 >= static_cast<size_t>(kLast / kEach));
      CHECK(h.nic.counters().np_cnp_withheld + cnps.size() + 2 * flows >= windows);
      CHECK(h.nic.counters().np_cnp_withheld > windows / 3);
    }
  }
}

TEST_CASE("notification: a limit of CNPs that is lifted while some wait lets them go") {
  NicParameters p = nic_parameters();
  p.cnp_nic_interval = 10 * kMillisecond;
  const std::vector<QueuePairParameters> pairs(3, receiver());
  NicHarness h(p, pairs);
  for (uint32_t flow = 0; flow < 3; ++flow) h.receive(0, h.data(0, 3, flow));
  h.run(kMillisecond);
  CHECK(h.of_kind(FrameKind::cnp).size() == 1);
  p.cnp_nic_interval = 0;
  h.nic.reconfigure(p, pairs);
  h.run(2 * kMillisecond);
  CHECK(h.of_kind(FrameKind::cnp).size() == 3);
  CHECK(h.nic.counters().np_cnp_withheld == 0);
}

}  // namespace
}  // namespace weir::test
