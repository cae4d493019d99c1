// Congestion points of a switch that routes: where their CNMs go, as datagrams.
#include "test/router_harness.h"
#include "wire/qcn.h"

using namespace weir;
using namespace weir::test;
using C = SwitchPortCounters;

namespace {

// Two senders of 1 Gb/s to port 2 fill its queue; samples are often, and without jitter.
SwitchParameters point_parameters() {
  SwitchParameters p = router_parameters(3);
  p.cn_priorities = 1 << 3;
  p.cnms_by_ip = true;
  p.cnm_priority = 6;
  p.qcn.cp_sample_base = 10'000;
  p.qcn.cp_queue_set_point = 5'000;
  p.qcn.jitter = 0;
  p.ecn_priorities = p.pfc_priorities = 0;
  for (auto& port : p.ports) port.cn_defence.fill(CnDefence::interior_ready);
  return p;
}

template <class Bed>
void introduce_all(Bed& bed, uint8_t version) {
  for (uint8_t port = 0; port < 3; ++port) {
    const bool ipv4 = version == 4;
    bed.introduce(port, ipv4 ? ip4(10, 0, port, 9) : ip6(port, 9), ipv4 ? ip4(10, 0, port, 1) : ip6(port, 1), kStation + port);
  }
}

template <class Bed>
std::vector<Sent> congest(Bed& bed, const IpAddress& one, const IpAddress& other, const IpAddress& to, int frames = 40) {
  std::vector<Sent> cnms;
  for (int i = 0; i < frames; ++i) {
    bed.receive(0, roce_frame(one, to, 0xc0de, 64, 900));
    bed.receive(1, roce_frame(other, to, 0xc0df, 64, 900));
    for (Sent& sent : bed.after(8'192)) {
      if (sent.meta.kind == FrameKind::cnm) cnms.push_back(std::move(sent));
    }
  }
  for (Sent& sent : bed.sent()) {
    if (sent.meta.kind == FrameKind::cnm) cnms.push_back(std::move(sent));
  }
  return cnms;
}

// Another router's: what comes from this one's own addresses is a martian.
void come_from(std::vector<uint8_t>& datagram, const IpAddress& source) {
  PacketMeta meta;
  REQUIRE(classify(datagram.data(), static_cast<uint32_t>(datagram.size()), meta) == Refusal::none);
  uint8_t* const ip = datagram.data() + meta.l3_offset;
  uint8_t* const udp = ip + ip_header_length(ip);
  std::memcpy(ip + 12, source.bytes, 4);
  store_be16(ip + 10, 0);
  store_be16(ip + 10, internet_checksum(ip, ip_header_length(ip)));
  store_be16(udp + 6, 0);
  store_be16(udp + 6,
             transport_checksum(ip, kProtocolUdp, udp, static_cast<uint32_t>(ip_total_length(ip) - ip_header_length(ip))));
}

template <class Bed>
uint64_t points(Bed& bed, uint64_t SwitchPriorityCounters::*what) {
  uint64_t sum = 0;
  for (uint16_t port = 0; port < 3; ++port) sum += bed.of(port).counters(port, 3).*what;
  return sum;
}

}  // namespace

TEST_CASE_TEMPLATE("qcn router: a sampled packet's source gets a datagram by the route to it, with the beginning of the packet",
                   Bed, RouterOf<1>, RouterOf<2>, RouterOf<3>) {
  for (const uint8_t version : {uint8_t{4}, uint8_t{6}}) {
    CAPTURE(version);
    Bed bed(point_parameters());
    introduce_all(bed, version);
    const auto host = [&](uint8_t port) { return version == 4 ? ip4(10, 0, port, 9) : ip6(port, 9); };
    const std::vector<Sent> cnms = congest(bed, host(0), host(1), host(2));
    REQUIRE(cnms.size() > 4);
    CHECK(cnms.size() == points(bed, &SwitchPriorityCounters::cn_cp_transmitted_cnms));
    std::array<int, 2> told{};
    for (const Sent& sent : cnms) {
      REQUIRE(sent.port < 2);
      ++told[sent.port];
      CHECK(sent.meta.destination_mac == kStation + sent.port);
      CHECK(sent.meta.source_mac == kRouterMac);
      CHECK(sent.meta.dscp == 6);  // the first that is mapped to priority 6 here: 48 is mapped to 0
      CHECK(sent.ip()[version == 4 ? 8 : 7] == 64);
      CongestionNotification cnm;
      REQUIRE(parse_cnm_datagram(sent.bytes.data(), sent.meta, cnm) == Refusal::none);
      CHECK(cnm.priority == 3);
      CHECK(cnm.quantized_feedback > 0);
      CHECK(cnm.congestion_point == (uint64_t{0x025753000002} << 16 | 2 << 3 | 3));
      CHECK(cnm.msdu.size() == known_by(version));
      const IpAddress source = host(static_cast<uint8_t>(sent.port));
      CHECK(sampled_source(cnm.msdu) == source);
      IpAddress to{.version = version}, from{.version = version};
      const uint32_t bytes = ip_address_length(version);
      std::memcpy(from.bytes, sent.ip() + ip_source_offset(version), bytes);
      std::memcpy(to.bytes, sent.ip() + ip_source_offset(version) + bytes, bytes);
      CHECK(to == source);
      const auto link = static_cast<uint8_t>(sent.port);
      CHECK(from == (version == 4 ? ip4(10, 0, link, 1) : ip6(link, 1)));
    }
    CHECK(told[0] > 0);
    CHECK(told[1] > 0);
  }
}

TEST_CASE_TEMPLATE("qcn router: without a way back nobody is told, and it is counted", Bed, RouterOf<1>, RouterOf<2>) {
  Bed bed(point_parameters());
  introduce_all(bed, 4);
  CHECK(congest(bed, ip4(192, 0, 2, 1), ip4(192, 0, 2, 2), ip4(10, 0, 2, 9)).empty());
  const uint64_t made = points(bed, &SwitchPriorityCounters::cn_cp_transmitted_cnms);
  CHECK(made > 4);
  CHECK(bed.count(&C::drop_ip_no_route) == made);
  CHECK(bed.count(&C::router_made_packets) == 3);  // the answers to those who asked: no ICMP about CNMs
}

TEST_CASE_TEMPLATE("qcn router: a CNM waits for a neighbour as any packet does", Bed, RouterOf<1>, RouterOf<3>) {
  Bed bed(point_parameters());
  bed.introduce(2, ip4(10, 0, 2, 9), ip4(10, 0, 2, 1), kStation + 2);
  CHECK(congest(bed, ip4(10, 0, 0, 9), ip4(10, 0, 1, 9), ip4(10, 0, 2, 9), 12).empty());
  std::vector<uint8_t> answer(kNeighbourFrame);
  const LinkHeader link{.destination_mac = kRouterMac, .source_mac = kStation};
  answer.resize(build_neighbour_answer(answer.data(), link, ip4(10, 0, 0, 9), ip4(10, 0, 0, 1)));
  uint64_t told = 0;
  for (const Sent& sent : bed.pass(0, answer)) told += sent.port == 0 && sent.meta.kind == FrameKind::cnm;
  CHECK(told > 0);
  // The other does not answer: what waited for it goes, and no ICMP of it.
  bed.after(5 * kSecond);
  CHECK(bed.count(&C::drop_neighbor_unknown) > 0);
  CHECK(bed.held() == 0);
  CHECK(bed.available() == bed.memory.shape().count);
}

TEST_CASE("qcn router: a CNM that passes is routed by its DSCP's priority, and stays out where it comes from outside") {
  for (const bool outside : {false, true}) {
    SwitchParameters p = point_parameters();
    p.ports[2].cn_defence[3] = outside ? CnDefence::edge : CnDefence::interior_ready;
    p.ports[2].cn_alternate_priority[3] = 1;
    RouterHarness bed(p);
    introduce_all(bed, 4);
    std::vector<uint8_t> datagram = congest(bed, ip4(10, 0, 0, 9), ip4(10, 0, 1, 9), ip4(10, 0, 2, 9)).at(0).bytes;
    store_be48(datagram.data(), kRouterMac);
    come_from(datagram, ip4(10, 0, 2, 77));
    const uint64_t before = bed.of(0).counters(0, 6).queue_packets + bed.of(1).counters(1, 6).queue_packets;
    const std::vector<Sent> sent = bed.pass(2, datagram);
    CHECK(sent.size() == (outside ? 0 : 1));
    CHECK(bed.count(&C::drop_cnm_from_outside) == (outside ? 1 : 0));
    CHECK(bed.of(0).counters(0, 6).queue_packets + bed.of(1).counters(1, 6).queue_packets == before + sent.size());
  }
}

TEST_CASE("qcn router: its CNMs are datagrams, and those of a bridge are not") {
  SwitchParameters p = point_parameters();
  p.cnms_by_ip = false;
  CHECK_THROWS_AS(RouterHarness{p}, NativeError);
  p.cnms_by_ip = true;
  p.router = {};
  CHECK_THROWS_AS(RouterHarness{p}, NativeError);
}
