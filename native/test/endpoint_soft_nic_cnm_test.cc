// CNMs to the soft NIC: which reaction point they mean, and which are refused.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "test/qcn_harness.h"
#include "wire/bytes.h"
#include "wire/ethernet.h"

namespace weir::test {
namespace {

constexpr uint64_t kOwnMac = 0x0257450000a0;  // first of a row: addresses of queue pairs

// CNPVs 3 and 4. Flows: 1 and 2 at priority 3, 3 at priority 4.
struct Bed {
  explicit Bed(const CongestionParameters& control = QcnParameters{}) : h(parameters(control), pairs()) { h.run(kMillisecond); }
  static NicParameters parameters(const CongestionParameters& control) {
    NicParameters p = qcn_parameters(k1G);
    p.congestion = control;
    p.grouping.priorities = 1 << 3 | 1 << 4;
    return p;
  }
  static std::vector<QueuePairParameters> pairs() {
    std::vector<QueuePairParameters> list{flow_sender(0x1000), flow_sender(0x1001), flow_sender(0x1002), flow_sender(0x1003)};
    list[1].path.destination_mac = kPeerMac + 1;
    list[2].priority = 4;
    list[3].priority = 0;
    return list;
  }
  std::vector<Rate> rates() {
    std::vector<Rate> list;
    for (const QueuePair& qp : h.nic.queue_pairs()) list.push_back(h.nic.allowed_rate(qp));
    return list;
  }
  // The counters of CNMs that this one changed, by name.
  std::vector<std::string> counted(const std::vector<uint8_t>& bytes) {
    const NicCounters before = h.nic.counters();
    CHECK(h.receive(h.nic.now(), bytes) == SoftNic::Disposition::consumed);
    std::vector<std::string> names;
    for (int i = 0; i < NicCounters::kCount; ++i) {
      const std::string name = NicCounters::kDescriptions[i].name;
      const uint64_t more = h.nic.counters().words()[i] - before.words()[i];
      const bool always = name == "rx_packets" || name == "rx_bytes" || name == "rp_cur_flows";
      if (more == 1 && !always) names.push_back(name);
    }
    return names;
  }

  NicHarness h;
};

using Names = std::vector<std::string>;

// Returns the part that a switch encapsulates of a frame of queue pair `index`.
std::vector<uint8_t> encapsulated(const QueuePairParameters& qp, uint32_t octets) {
  const std::vector<uint8_t> frame = roce(kOpcodeRcSendOnly).on(qp.path).to(qp.remote_qpn).payload(64).bytes();
  const uint8_t* msdu = frame.data() + 12;  // no tags
  return {msdu, msdu + octets};
}

}  // namespace

TEST_CASE("soft nic, CNM: each refusal counts its reason, and changes no rate") {
  Bed bed;
  const std::vector<Rate> line(4, k1G);
  CHECK(bed.rates() == line);
  const auto refused = [&](const std::vector<uint8_t>& bytes, const char* reason) {
    CAPTURE(reason);
    CHECK(bed.counted(bytes) == Names{reason});
    CHECK(bed.rates() == line);
    CHECK(bed.h.nic.counters().rp_cur_flows == 0);
  };
  const auto changed = [](const std::function<void(uint8_t*)>& change) {
    std::vector<uint8_t> bytes = cnm({});
    change(bytes.data() + kEthernetHeader + kCnTag);
    return bytes;
  };
  refused(cnm({.to = kNicMac + 1}), "rp_cnm_not_for_us");
  refused(cnm({.to = 0x0180c2000001}), "rp_cnm_not_for_us");
  refused(cnm({.to = 0xffffffffffff}), "rp_cnm_not_for_us");
  refused(changed([](uint8_t* pdu) { pdu[0] = 0x10; }), "rp_cnm_bad_version");
  refused(changed([](uint8_t* pdu) { store_be16(pdu + 22, 65); }), "rp_cnm_malformed");
  refused(changed([](uint8_t* pdu) { store_be16(pdu + 22, 64); }), "rp_cnm_malformed");
  std::vector<uint8_t> cut = cnm({});
  cut.resize(kEthernetHeader + kCnTag + kCnmPdu - 1);
  refused(cut, "rp_cnm_truncated");
  cut.resize(kEthernetHeader + kCnTag);
  refused(cut, "rp_cnm_truncated");
  refused(cnm({.feedback = 0}), "rp_cnm_no_feedback");
  for (const uint8_t priority : {0, 1, 2, 5, 6, 7}) refused(cnm({.priority = priority}), "rp_cnm_not_cnpv");
  for (const int flow : {0, 4, 5, 1'000, 65'535}) refused(cnm({.flow = static_cast<uint16_t>(flow)}), "rp_cnm_unknown_flow");
  refused(cnm({.encapsulated_mac = kPeerMac + 1}), "rp_cnm_wrong_flow");
  refused(cnm({.flow = 2}), "rp_cnm_wrong_flow");
  refused(cnm({.flow = 3}), "rp_cnm_wrong_flow");
  refused(cnm({.priority = 4}), "rp_cnm_wrong_flow");
  refused(cnm({.flow = {}, .encapsulated_mac = kPeerMac + 7}), "rp_cnm_unknown_flow");
  refused(cnm({.flow = {}, .priority = 4, .encapsulated_mac = kPeerMac + 1}), "rp_cnm_unknown_flow");
  // A right one is taken.
  CHECK(bed.counted(cnm({.flow = 3, .priority = 4})) == Names{"rp_cnm_handled"});
  CHECK(bed.rates() == std::vector<Rate>{k1G, k1G, 750'000'000, k1G});
}

TEST_CASE("soft nic, CNM: any bytes are refused or taken, and counted once") {
  Bed bed;
  Random random(7);
  const std::vector<uint8_t> right = cnm({});
  for (int round = 0; round < 20'000; ++round) {
    std::vector<uint8_t> bytes = right;
    bytes.resize(kEthernetHeader + random.next() % 60);
    for (uint64_t n = random.next() % 4; n > 0; --n)
      bytes[kEthernetHeader - 2 + random.next() % (bytes.size() - 12)] ^= 1u << random.next() % 8;
    PacketMeta meta;
    classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta);
    if (meta.ethertype != kEthertypeCnm) continue;
    REQUIRE(bed.counted(bytes).size() == 1);
  }
  CHECK(bed.h.nic.counters().rp_cnm_handled > 100);
}

TEST_CASE("soft nic, CNM: ignored while QCN is off, as CNPs are under QCN") {
  for (const CongestionParameters& control :
       std::initializer_list<CongestionParameters>{CongestionControl::Parameters{}, DcqcnParameters{}}) {
    Bed bed(control);
    CHECK(bed.counted(cnm({})) == Names{"rp_cnm_ignored"});
    CHECK(bed.counted(cnm({.flow = {}})) == Names{"rp_cnm_ignored"});
    CHECK(bed.rates() == std::vector<Rate>(4, k1G));
  }
  Bed bed;
  CHECK(bed.counted(bed.h.cnp()) == Names{"rp_cnp_ignored"});
  CHECK(bed.counted(bed.h.data(0, 3)) == Names{"np_ecn_marked_roce_packets"});
  CHECK(bed.rates() == std::vector<Rate>(4, k1G));
  bed.h.run(2 * kMillisecond);
  CHECK(bed.h.of_kind(FrameKind::cnp).empty());
}

TEST_CASE("soft nic, CNM: without a CN-TAG the flow is found by what is encapsulated") {
  NicParameters p = qcn_parameters(k1G);
  p.grouping.cn_tag = false;
  std::vector<QueuePairParameters> pairs{flow_sender(0x1000), flow_sender(0x1001), flow_sender(0x1002), flow_sender(0x1003)};
  pairs[2].path.destination_mac = kPeerMac + 1;
  pairs[3].path.ip_version = 6;
  NicHarness h(p, pairs);
  h.run(kMillisecond);
  const auto limited = [&] {
    std::vector<int> list;
    for (const QueuePair& qp : h.nic.queue_pairs()) list.push_back(h.nic.allowed_rate(qp) < k1G ? 1 : 0);
    return list;
  };
  const auto tell = [&](uint32_t index, uint32_t octets) {
    const std::vector<uint8_t> msdu = encapsulated(pairs[index], octets);
    h.receive(h.nic.now(), cnm({.flow = {}, .encapsulated_mac = pairs[index].path.destination_mac, .msdu = msdu}));
  };
  tell(0, 37);  // the headers are cut off within BTH, and three flows go there
  tell(0, 0);
  CHECK(h.nic.counters().rp_cnm_ambiguous == 2);
  CHECK(limited() == std::vector{0, 0, 0, 0});
  tell(1, 64);
  CHECK(limited() == std::vector{0, 1, 0, 0});
  tell(3, 64);
  CHECK(limited() == std::vector{0, 1, 0, 1});
  tell(2, 0);  // the only flow to this address
  CHECK(limited() == std::vector{0, 1, 1, 1});
  tell(0, 42);
  CHECK(limited() == std::vector{1, 1, 1, 1});
  CHECK(h.nic.counters().rp_cnm_handled == 4);
  // It belongs to nobody here.
  QueuePairParameters other = flow_sender(0x1004);
  pairs.push_back(other);
  tell(4, 64);
  CHECK(h.nic.counters().rp_cnm_unknown_flow == 1);
}

TEST_CASE("soft nic, CNM: queue pairs with MAC addresses of their own are told apart by them") {
  for (const bool cn_tag : {false, true}) {
    NicParameters p = qcn_parameters(k1G);
    p.grouping.cn_tag = cn_tag;
    std::vector<QueuePairParameters> pairs;
    for (uint32_t i = 0; i < 4; ++i) {
      pairs.push_back(flow_sender(0x1000 + i));
      pairs[i].path.source_mac = kOwnMac + i;
    }
    pairs.push_back(receiver(0x31));
    NicHarness h(p, pairs);
    h.run(kMillisecond);
    for (const SentFrame& f : h.frames) REQUIRE(f.meta.source_mac == kOwnMac + (f.meta.destination_qp - 0x1000));
    const auto flow = [&](uint16_t id) { return cn_tag ? std::optional<uint16_t>(id) : std::nullopt; };
    h.receive(kMillisecond, cnm({.flow = flow(3), .to = kOwnMac + 2}));
    CHECK(h.nic.counters().rp_cnm_handled == 1);
    for (uint32_t i = 0; i < 4; ++i) CHECK((h.nic.allowed_rate(h.nic.queue_pairs()[i]) < k1G) == (i == 2));
    h.receive(kMillisecond, cnm({.flow = flow(5), .to = kOwnMac + 4}));
    CHECK(h.nic.counters().rp_cnm_not_for_us == 1);
    h.receive(kMillisecond, cnm({.flow = flow(3)}));
    CHECK(h.nic.counters().rp_cnm_handled == 1);
    if (cn_tag) {
      h.receive(kMillisecond, cnm({.flow = flow(3), .to = kOwnMac + 1}));
      CHECK(h.nic.counters().rp_cnm_wrong_flow == 2);
    } else {
      CHECK(h.nic.counters().rp_cnm_unknown_flow == 1);
    }
    // Other frames to them are the NIC's too.
    std::vector<uint8_t> data = h.data(0, 2, 4);
    store_be48(data.data(), kOwnMac + 1);
    h.receive(kMillisecond, data);
    CHECK(h.nic.queue_pairs()[4].counters.rx_packets == 1);
    store_be48(data.data(), kOwnMac + 4);
    h.receive(kMillisecond, data);
    CHECK(h.nic.counters().drop_not_for_us == 1);
  }
}

TEST_CASE(
    "soft nic, CNM: of those that come as datagrams the flow is found by the packet that they are about, and no others are") {
  NicParameters p = qcn_parameters(k1G);
  p.grouping.cn_tag = false;
  p.grouping.cnms_by_ip = true;
  std::vector<QueuePairParameters> pairs{flow_sender(0x1000), flow_sender(0x1001), flow_sender(0x1002)};
  pairs[2].path.ip_version = 6;
  NicHarness h(p, pairs);
  h.run(kMillisecond);
  const auto datagram = [&](uint32_t index, const std::function<void(uint8_t*, uint8_t*)>& change = {}) {
    const RocePath& path = pairs[index].path;
    const uint8_t version = path.ip_version;
    std::vector<uint8_t> msdu = encapsulated(pairs[index], known_by(version));
    const std::vector<uint8_t> frame = cnm({.flow = {}, .encapsulated_mac = 0x0257530000ff, .msdu = msdu});
    PacketPool pool(1, kTelemetryStride);
    const PacketId id = pool.allocate();
    pool[id].reset();
    pool[id].length = static_cast<uint32_t>(frame.size());
    std::memcpy(pool.data(id), frame.data(), frame.size());
    REQUIRE(wrap_cnm(pool, id, {.version = version, .bytes = {10, 9, 0, 1}}, 48, 64));
    std::vector<uint8_t> bytes(pool.data(id), pool.data(id) + pool[id].length);
    if (change) {
      uint8_t* const ip = bytes.data() + kEthernetHeader;
      uint8_t* const udp = ip + ip_header_length(ip);
      change(ip, udp + kUdpHeader);
      ip_set_length(ip, static_cast<uint16_t>(bytes.size() - kEthernetHeader));
      store_be16(udp + 6, 0);
    }
    return bytes;
  };
  const auto limited = [&] {
    std::vector<int> list;
    for (const QueuePair& qp : h.nic.queue_pairs()) list.push_back(h.nic.allowed_rate(qp) < k1G ? 1 : 0);
    return list;
  };
  const auto refused = [&](const std::vector<uint8_t>& bytes, uint64_t NicCounters::*reason) {
    const uint64_t before = h.nic.counters().*reason;
    CHECK(h.receive(h.nic.now(), bytes) == SoftNic::Disposition::consumed);
    CHECK(h.nic.counters().*reason == before + 1);
    CHECK(limited() == std::vector{0, 0, 0});
  };
  using C = NicCounters;
  // They are to an address that the packet is not from; about one of another destination, or another queue pair.
  refused(datagram(0, [](uint8_t* ip, uint8_t*) { ip[19] ^= 1; }), &C::rp_cnm_wrong_flow);
  refused(datagram(0, [](uint8_t*, uint8_t* pdu) { pdu[kCnmPdu + 2 + 19] ^= 1; }), &C::rp_cnm_unknown_flow);
  refused(datagram(0, [](uint8_t*, uint8_t* pdu) { pdu[kCnmPdu + 2 + 20 + 8 + 7] ^= 4; }), &C::rp_cnm_unknown_flow);
  refused(datagram(0, [](uint8_t*, uint8_t* pdu) { pdu[kCnmPdu] = 0x07; }), &C::rp_cnm_ambiguous);
  refused(datagram(0, [](uint8_t*, uint8_t* pdu) { pdu[14] = 2 << 5; }), &C::rp_cnm_not_cnpv);
  refused(datagram(0, [](uint8_t*, uint8_t* pdu) { pdu[1] = 0; }), &C::rp_cnm_no_feedback);
  refused(datagram(0, [](uint8_t*, uint8_t* pdu) { pdu[0] = 0x10; }), &C::rp_cnm_bad_version);
  refused(datagram(0, [](uint8_t*, uint8_t* pdu) { pdu[23] = 65; }), &C::rp_cnm_malformed);
  std::vector<uint8_t> damaged = datagram(0);
  damaged.back() ^= 1;
  refused(damaged, &C::rp_cnm_malformed);
  // It is of layer 2, however right.
  const std::vector<uint8_t> msdu = encapsulated(pairs[0], 42);
  refused(cnm({.flow = {}, .msdu = msdu}), &C::rp_cnm_ignored);

  h.receive(h.nic.now(), datagram(1));
  CHECK(limited() == std::vector{0, 1, 0});
  h.receive(h.nic.now(), datagram(2));
  CHECK(limited() == std::vector{0, 1, 1});
  // The TTL of a packet that was sampled behind other routers differs.
  h.receive(h.nic.now(), datagram(0, [](uint8_t*, uint8_t* pdu) { pdu[kCnmPdu + 2 + 8] -= 3; }));
  CHECK(limited() == std::vector{1, 1, 1});
  CHECK(h.nic.counters().rp_cnm_handled == 3);
}

TEST_CASE("soft nic, CNM: a datagram to that port is one as any where nobody listens for CNMs there") {
  Bed bed;
  std::vector<uint8_t> msdu = encapsulated(flow_sender(0x1000), 42);
  const std::vector<uint8_t> frame = cnm({.flow = {}, .msdu = msdu});
  PacketPool pool(1, kTelemetryStride);
  const PacketId id = pool.allocate();
  pool[id].reset();
  pool[id].length = static_cast<uint32_t>(frame.size());
  std::memcpy(pool.data(id), frame.data(), frame.size());
  REQUIRE(wrap_cnm(pool, id, {.version = 4, .bytes = {10, 9, 0, 1}}, 48, 64));
  CHECK(bed.h.receive(bed.h.nic.now(), {pool.data(id), pool.data(id) + pool[id].length}) == SoftNic::Disposition::punt);
  CHECK(bed.h.nic.counters().rp_cnm_handled == 0);
}

}  // namespace weir::test
