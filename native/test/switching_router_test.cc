// Frames to the router's MAC address: rewritten, refused, answered.
#include <map>

#include "base/random.h"
#include "test/router_harness.h"

using namespace weir;
using namespace weir::test;
using C = SwitchPortCounters;

namespace {

bool checksum_is_right(const Sent& sent) {
  return sent.meta.ip_version != 4 || internet_checksum(sent.ip(), ip_header_length(sent.ip())) == 0;
}

// The ICMP message in a frame: its type and code.
std::pair<int, int> icmp_of(const Sent& sent) {
  REQUIRE(sent.meta.l3_offset != 0);
  CHECK(sent.ip()[sent.meta.ip_version == 6 ? 6 : 9] == (sent.meta.ip_version == 6 ? kProtocolIcmpv6 : kProtocolIcmp));
  const uint8_t* const icmp = sent.ip() + ip_header_length(sent.ip());
  const uint32_t length = ip_total_length(sent.ip()) - ip_header_length(sent.ip());
  CHECK((sent.meta.ip_version == 6 ? transport_checksum(sent.ip(), kProtocolIcmpv6, icmp, length)
                                   : internet_checksum(icmp, length)) == 0);
  return {icmp[0], icmp[1]};
}

}  // namespace

TEST_CASE_TEMPLATE("router: a packet leaves with other MAC addresses and a hop less; its checksums, ICRC, priority and ECN hold",
                   Bed, RouterOf<1>, RouterOf<2>, RouterOf<3>) {
  Bed bed(router_parameters());
  for (const bool ipv6 : {false, true}) {
    const IpAddress from = ipv6 ? ip6(0, 9) : ip4(10, 0, 0, 9), to = ipv6 ? ip6(1, 5) : ip4(10, 0, 1, 5);
    bed.introduce(1, to, ipv6 ? ip6(1, 1) : ip4(10, 0, 1, 1), kStation + 5);
    for (const uint8_t ttl : {uint8_t{255}, uint8_t{64}, uint8_t{2}}) {
      const std::vector<Sent> sent = bed.pass(0, roce_frame(from, to, 0xc001, ttl));
      REQUIRE(sent.size() == 1);
      CHECK(sent[0].port == 1);
      CHECK(sent[0].meta.destination_mac == kStation + 5);
      CHECK(sent[0].meta.source_mac == kRouterMac);
      CHECK(sent[0].ip()[ipv6 ? 7 : 8] == ttl - 1);
      CHECK(checksum_is_right(sent[0]));
      CHECK(sent[0].meta.kind == FrameKind::roce);
      CHECK(sent[0].meta.ecn == 2);
      CHECK(sent[0].meta.dscp == 3);
      CHECK(icrc_ok(sent[0].bytes.data(), sent[0].meta));
    }
  }
  CHECK(bed.of(1).counters(1, 3).queue_packets == 6);
  CHECK(bed.count(&C::routed_packets) == 6);
  bed.check_balance();
}

TEST_CASE_TEMPLATE("router: every checksum comes out right, whatever it was", Bed, RouterOf<1>, RouterOf<2>, RouterOf<3>) {
  Bed bed(router_parameters());
  bed.introduce(1, ip4(10, 0, 1, 5), ip4(10, 0, 1, 1), kStation + 5);
  Random random(3);
  for (int i = 0; i < 2'000; ++i) {
    std::vector<uint8_t> frame =
        roce_frame(ip4(10, 0, 0, 9), ip4(10, 0, 1, 5), 0xc001, static_cast<uint8_t>(2 + random.next() % 254), 0);
    uint8_t* const ip = frame.data() + kEthernetHeader;
    store_be16(ip + 4, static_cast<uint16_t>(random.next()));
    ip_set_length(ip, static_cast<uint16_t>(ip_total_length(ip)));
    const std::vector<Sent> sent = bed.pass(0, frame);
    REQUIRE(sent.size() == 1);
    REQUIRE(checksum_is_right(sent[0]));
  }
}

TEST_CASE_TEMPLATE("router: from port to VLAN and back the tag comes and goes, and the packet is whole", Bed, RouterOf<1>,
                   RouterOf<2>, RouterOf<3>) {
  Bed bed(router_parameters());
  bed.introduce(3, ip4(10, 0, 7, 5), ip4(10, 0, 7, 1), kStation + 5, 7);
  bed.introduce(0, ip4(10, 0, 0, 9), ip4(10, 0, 0, 1), kStation + 9);
  std::vector<Sent> sent = bed.pass(0, roce_frame(ip4(10, 0, 0, 9), ip4(10, 0, 7, 5)));
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].port == 3);
  CHECK(sent[0].meta.tagged);
  CHECK(sent[0].meta.vlan() == 7);
  CHECK(sent[0].meta.pcp() == 3);
  CHECK(icrc_ok(sent[0].bytes.data(), sent[0].meta));
  sent = bed.pass(3, roce_frame(ip4(10, 0, 7, 5), ip4(10, 0, 0, 9), 0xc001, 64, 256, 7));
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].port == 0);
  CHECK(!sent[0].meta.tagged);
  CHECK(icrc_ok(sent[0].bytes.data(), sent[0].meta));
  CHECK(checksum_is_right(sent[0]));
  bed.check_balance();
}

TEST_CASE_TEMPLATE("router: a frame at the end of its hops is told, traceroute's way, and so is one without a route or too long",
                   Bed, RouterOf<1>, RouterOf<2>, RouterOf<3>) {
  SwitchParameters parameters = router_parameters();
  parameters.ports[1].mtu = 600;
  Bed bed(parameters);
  for (const bool ipv6 : {false, true}) {
    CAPTURE(ipv6);
    const IpAddress from = ipv6 ? ip6(0, 9) : ip4(10, 0, 0, 9), to = ipv6 ? ip6(1, 5) : ip4(10, 0, 1, 5);
    const IpAddress router = ipv6 ? ip6(0, 1) : ip4(10, 0, 0, 1);
    bed.introduce(1, to, ipv6 ? ip6(1, 1) : ip4(10, 0, 1, 1), kStation + 5);
    const auto refused = [&](const IpAddress& where, uint8_t ttl, uint32_t payload) {
      const std::vector<Sent> sent = bed.pass(0, roce_frame(from, where, 0xc001, ttl, payload));
      REQUIRE(sent.size() == 1);
      CHECK(sent[0].port == 0);
      CHECK(sent[0].meta.destination_mac == kStation + 9);
      CHECK(checksum_is_right(sent[0]));
      CHECK(std::memcmp(sent[0].ip() + ip_source_offset(from.version), router.bytes, ip_address_length(from.version)) == 0);
      const uint8_t* const icmp = sent[0].ip() + ip_header_length(sent[0].ip());
      // It quotes the packet from its header on.
      CHECK(std::memcmp(icmp + kIcmpHeader + ip_source_offset(from.version), from.bytes, ip_address_length(from.version)) == 0);
      if (payload > 600) CHECK(load_be32(icmp + 4) == 600);
      return icmp_of(sent[0]);
    };
    for (const uint8_t ttl : {uint8_t{0}, uint8_t{1}}) CHECK(refused(to, ttl, 64) == (ipv6 ? std::pair(3, 0) : std::pair(11, 0)));
    CHECK(refused(ipv6 ? ip6(9, 9) : ip4(172, 16, 0, 1), 64, 64) == (ipv6 ? std::pair(1, 0) : std::pair(3, 0)));
    CHECK(refused(to, 64, 1'024) == (ipv6 ? std::pair(2, 0) : std::pair(3, 4)));
    CHECK(refused(router, 64, 64) == (ipv6 ? std::pair(1, 4) : std::pair(3, 3)));
  }
  CHECK(bed.count(&C::drop_ttl_expired) == 4);
  CHECK(bed.count(&C::drop_ip_no_route) == 2);
  CHECK(bed.count(&C::drop_mtu_exceeded) == 2);
  CHECK(bed.count(&C::drop_router_protocol) == 2);
  bed.check_balance();
}

TEST_CASE_TEMPLATE("router: ICMP is limited to a thousand in a second, fifty at once, and never answers an error or a group", Bed,
                   RouterOf<1>, RouterOf<2>, RouterOf<3>) {
  Bed bed(router_parameters());
  uint64_t told = 0;
  for (int i = 0; i < 300; ++i) {
    bed.receive(0, roce_frame(ip4(10, 0, 0, 9), ip4(172, 16, 0, 1), 0xc001, 64, 0));
  }
  told = bed.sent().size();
  CHECK(told == 50);
  CHECK(bed.count(&C::router_icmp_limited) == 250);
  CHECK(bed.count(&C::drop_ip_no_route) == 300);
  bed.after(kSecond);
  // An error about an error: time exceeded as a packet on its way.
  std::vector<uint8_t> error(kIcmpErrorHeaders + kMostQuoted);
  const std::vector<uint8_t> quoted = roce_frame(ip4(172, 16, 0, 1), ip4(10, 0, 1, 5));
  const LinkHeader link{.destination_mac = kRouterMac, .source_mac = kStation + 9};
  error.resize(build_icmp_error(error.data(), static_cast<uint32_t>(error.size()), link, ip4(10, 0, 0, 9),
                                quoted.data() + kEthernetHeader, 200, IcmpError::time_exceeded, 0));
  CHECK(bed.pass(0, error).empty());
  CHECK(bed.count(&C::drop_ip_no_route) == 301);
  bed.check_balance();
}

TEST_CASE_TEMPLATE("router: martians, bad headers, other protocols and frames for nobody go no further, each with its reason",
                   Bed, RouterOf<1>, RouterOf<2>, RouterOf<3>) {
  Bed bed(router_parameters());
  const IpAddress host = ip4(10, 0, 0, 9);
  for (const IpAddress& where : {ip4(127, 0, 0, 1), ip4(0, 0, 0, 1), ip4(224, 0, 0, 5), ip4(255, 255, 255, 255),
                                 ip4(169, 254, 1, 1), ip4(10, 0, 1, 255), ip4(10, 0, 1, 0)}) {
    CHECK(bed.pass(0, roce_frame(host, where)).empty());
  }
  for (const IpAddress& who : {ip4(127, 0, 0, 1), ip4(0, 0, 0, 0), ip4(239, 1, 1, 1)}) {
    CHECK(bed.pass(0, roce_frame(who, ip4(10, 0, 1, 5))).empty());
  }
  CHECK(bed.count(&C::drop_martian) == 10);
  // These come from the router itself: an address of the link, another, and one that only bridges; to others, and to itself.
  for (const IpAddress& who : {ip4(10, 0, 0, 1), ip4(10, 0, 1, 1), ip4(10, 0, 7, 1)}) {
    CHECK(bed.pass(0, roce_frame(who, ip4(10, 0, 1, 5))).empty());
    CHECK(bed.pass(0, roce_frame(who, ip4(10, 0, 1, 1))).empty());
  }
  CHECK(bed.pass(0, roce_frame(ip6(2, 1), ip6(1, 5))).empty());
  CHECK(bed.count(&C::drop_martian) == 17);
  // A damaged header, and a datagram that is longer than its frame.
  std::vector<uint8_t> damaged = roce_frame(host, ip4(10, 0, 1, 5));
  damaged[kEthernetHeader + 10] ^= 1;
  CHECK(bed.pass(0, damaged).empty());
  std::vector<uint8_t> cut = roce_frame(host, ip4(10, 0, 1, 5));
  cut.resize(40);
  CHECK(bed.pass(0, cut).empty());
  CHECK(bed.count(&C::drop_ip_header) == 2);
  // These are not IP; not to the router on its port; to the router where it has no interface.
  std::vector<uint8_t> other = roce_frame(host, ip4(10, 0, 1, 5));
  store_be16(other.data() + 12, 0x88b5);
  CHECK(bed.pass(0, other).empty());
  CHECK(bed.count(&C::drop_router_protocol) == 1);
  std::vector<uint8_t> stray = roce_frame(host, ip4(10, 0, 1, 5));
  store_be48(stray.data(), kStation + 77);
  CHECK(bed.pass(0, stray).empty());
  CHECK(bed.pass(3, roce_frame(host, ip4(10, 0, 1, 5))).empty());
  CHECK(bed.count(&C::drop_router_bridged) == 2);
  bed.check_balance();
}

TEST_CASE_TEMPLATE("router: bridged ports go on to bridge, and nothing of it comes out of routed ones", Bed, RouterOf<1>,
                   RouterOf<2>, RouterOf<3>) {
  Bed bed(router_parameters());
  std::vector<uint8_t> frame = roce_frame(ip4(192, 168, 0, 1), ip4(192, 168, 0, 2));
  store_be48(frame.data(), 0xffffffffffff);
  const std::vector<Sent> sent = bed.pass(3, frame);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].port == 4);
  CHECK(sent[0].bytes == frame);
  bed.check_balance();
}

TEST_CASE_TEMPLATE("router: pings of its own addresses are answered", Bed, RouterOf<1>, RouterOf<2>, RouterOf<3>) {
  Bed bed(router_parameters());
  for (const bool ipv6 : {false, true}) {
    // Any packet, made an echo request.
    std::vector<uint8_t> frame =
        ipv6 ? roce_frame(ip6(0, 9), ip6(1, 1), 0, 64, 64) : roce_frame(ip4(10, 0, 0, 9), ip4(10, 0, 1, 1), 0, 64, 64);
    uint8_t* const ip = frame.data() + kEthernetHeader;
    const uint32_t header = ip_header_length(ip), length = ip_total_length(ip) - header;
    ip[ipv6 ? 6 : 9] = ipv6 ? kProtocolIcmpv6 : kProtocolIcmp;
    std::memset(ip + header, 0, 4);
    ip[header] = ipv6 ? 128 : 8;
    store_be16(ip + header + 2,
               ipv6 ? transport_checksum(ip, kProtocolIcmpv6, ip + header, length) : internet_checksum(ip + header, length));
    ip_set_length(ip, static_cast<uint16_t>(header + length));
    const std::vector<Sent> sent = bed.pass(0, frame);
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].port == 0);
    CHECK(checksum_is_right(sent[0]));
    CHECK(icmp_of(sent[0]) == (ipv6 ? std::pair(129, 0) : std::pair(0, 0)));
    CHECK(std::memcmp(sent[0].ip() + header + 4, ip + header + 4, length - 4) == 0);
  }
  bed.check_balance();
}

TEST_CASE_TEMPLATE("router: of several ways a flow keeps to one, by its UDP source port, and ways have flows by their weight",
                   Bed, RouterOf<1>, RouterOf<2>, RouterOf<3>) {
  SwitchParameters parameters = router_parameters();
  parameters.router.routes.push_back({{ip4(172, 16, 0, 0), 12}, {{1, ip4(10, 0, 1, 5), 1}, {2, ip4(10, 0, 2, 5), 3}}});
  Bed bed(parameters);
  bed.introduce(1, ip4(10, 0, 1, 5), ip4(10, 0, 1, 1), kStation + 5);
  bed.introduce(2, ip4(10, 0, 2, 5), ip4(10, 0, 2, 1), kStation + 6);
  std::map<uint16_t, int> taken;
  for (uint16_t flow = 0; flow < 1'000; ++flow) {
    uint16_t first = 0;
    for (int i = 0; i < 2; ++i) {
      const auto sent =
          bed.pass(0, roce_frame(ip4(10, 0, 0, 9), ip4(172, 16, 3, 4), static_cast<uint16_t>(0xc000 + flow), 64, 0));
      REQUIRE(sent.size() == 1);
      if (i == 0) {
        ++taken[first = sent[0].port];
      } else {
        CHECK(sent[0].port == first);
      }
    }
  }
  CHECK(taken.size() == 2);
  CHECK(taken[1] > 190);  // 250, with a standard deviation of 14
  CHECK(taken[1] < 310);
}

TEST_CASE_TEMPLATE("router: of a gateway and a link each packet takes that with the shorter queue", Bed, RouterOf<1>, RouterOf<2>,
                   RouterOf<3>) {
  SwitchParameters parameters = router_parameters();
  parameters.load_balancing = LoadBalancing::adaptive;
  parameters.router.routes.push_back({{ip4(172, 16, 0, 0), 12}, {{1, ip4(10, 0, 1, 5), 1}, {.interface = 2, .on_link = true}}});
  Bed bed(parameters);
  bed.introduce(1, ip4(10, 0, 1, 5), ip4(10, 0, 1, 1), kStation + 5);
  std::map<uint16_t, int> taken;
  for (int i = 0; i < 100; ++i) {
    for (const Sent& one : bed.pass(0, roce_frame(ip4(10, 0, 0, 9), ip4(172, 16, 3, 4)))) ++taken[one.port];
  }
  CHECK(taken[1] > 20);
  CHECK(taken[2] > 0);  // questions for the destination
  bed.check_balance();
}

TEST_CASE_TEMPLATE("router: routes change while packets pass, and none is lost", Bed, RouterOf<1>, RouterOf<2>, RouterOf<3>) {
  SwitchParameters parameters = router_parameters();
  const auto route = [](uint8_t third, uint8_t port) {
    return RouterParameters::Route{{ip4(172, 16, third, 0), 24}, {{port, ip4(10, 0, port, 5), 1}}};
  };
  for (uint8_t i = 0; i < 100; ++i) parameters.router.routes.push_back(route(i, 1));
  Bed bed(parameters);
  bed.introduce(1, ip4(10, 0, 1, 5), ip4(10, 0, 1, 1), kStation + 5);
  bed.introduce(2, ip4(10, 0, 2, 5), ip4(10, 0, 2, 1), kStation + 6);
  const auto pass = [&](uint8_t third) { return bed.pass(0, roce_frame(ip4(10, 0, 0, 9), ip4(172, 16, third, 4))); };
  for (const uint8_t port : {uint8_t{2}, uint8_t{1}, uint8_t{2}}) {
    parameters.router.routes.clear();
    for (uint8_t i = 50; i < 150; ++i) parameters.router.routes.push_back(route(i, port));
    bed.reconfigure(parameters);
    for (uint8_t i = 50; i < 150; ++i) {
      const std::vector<Sent> sent = pass(i);
      REQUIRE(sent.size() == 1);
      REQUIRE(sent[0].port == port);
    }
    const std::vector<Sent> sent = pass(10);
    REQUIRE(sent.size() == 1);
    CHECK(icmp_of(sent[0]) == std::pair(3, 0));
  }
  CHECK(bed.of(0).routed().router()->route_count() == 3 * 6 + 4 + 100);
  // No interfaces any more: it bridges.
  parameters.router = {};
  bed.reconfigure(parameters);
  CHECK(bed.of(0).routed().router() == nullptr);
  CHECK(pass(60).size() == 4);
  bed.check_balance();
}

TEST_CASE_TEMPLATE("router: what its parameters name has to be there", Bed, RouterOf<1>, RouterOf<2>, RouterOf<3>) {
  SwitchParameters parameters = router_parameters();
  const auto refuses = [](SwitchParameters p) { CHECK_THROWS_AS(Bed{p}, NativeError); };
  auto changed = parameters;
  changed.router.interfaces[0].port = 99;
  refuses(changed);
  changed = parameters;
  changed.router.interfaces[1].port = 0;
  refuses(changed);
  changed = parameters;
  changed.router.routes.push_back({{ip4(172, 16, 0, 0), 33}, {{1, ip4(10, 0, 1, 5), 1}}});
  refuses(changed);
  changed.router.routes[0] = {{ip4(172, 16, 0, 0), 12}, {{9, ip4(10, 0, 1, 5), 1}}};
  refuses(changed);
  changed.router.routes[0] = {{ip4(172, 16, 0, 0), 12}, {{1, ip6(1, 5), 1}}};
  refuses(changed);
  changed.router.routes[0] = {{ip4(172, 16, 0, 0), 12}, {}};
  refuses(changed);
  changed = parameters;
  changed.cn_priorities = 1;
  refuses(changed);
}
