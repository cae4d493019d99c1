// Frames for the router's kernel, and frames of it.
#include "test/router_harness.h"
#include "wire/tags.h"

using namespace weir;
using namespace weir::test;
using C = SwitchPortCounters;

namespace {

// Port 0 and VLAN 20 of port 1 have twins.
SwitchParameters kernel_parameters() {
  SwitchParameters p = router_parameters(3);
  p.router.interfaces[1].vlan = 20;
  p.router.interfaces[0].kernel = p.router.interfaces[1].kernel = true;
  return p;
}

template <uint32_t kShards>
struct BedOf : RouterOf<kShards> {
  using RouterOf<kShards>::RouterOf;
  // Interfaces of the twins that have got a frame since this was last called.
  std::vector<uint16_t> taken() {
    std::vector<uint16_t> interfaces;
    for (size_t i = 0; i < this->wires.size(); ++i) {
      SoftSwitch& device = this->wires[i]->device;
      for (const auto& [id, interface] : device.routed().for_kernel()) {
        CHECK(!(*this->pools[i])[id].meta.tagged);
        CHECK(device.owns((*this->pools[i])[id].ingress_port));
        interfaces.push_back(interface);
        this->pools[i]->free(id);
      }
      device.routed().for_kernel().clear();
    }
    return interfaces;
  }
};

std::vector<uint8_t> to_mac(std::vector<uint8_t> frame, uint64_t mac) {
  store_be48(frame.data(), mac);
  return frame;
}

using Interfaces = std::vector<uint16_t>;

}  // namespace

TEST_CASE_TEMPLATE("router's kernel: gets what is for its addresses and for groups of the link, and nothing else", Bed, BedOf<1>,
                   BedOf<2>, BedOf<3>) {
  Bed bed(kernel_parameters());
  const IpAddress host = ip4(10, 0, 0, 9);
  CHECK(bed.pass(0, roce_frame(host, ip4(10, 0, 0, 1))).empty());
  CHECK(bed.taken() == Interfaces{0});
  CHECK(bed.pass(0, roce_frame(ip6(0, 9), ip6(0, 1))).empty());
  CHECK(bed.taken() == Interfaces{0});
  bed.receive(1, roce_frame(ip4(10, 0, 1, 9), ip4(10, 0, 1, 1), 0xc001, 64, 256, 20));
  CHECK(bed.taken() == Interfaces{1});
  bed.receive(0, to_mac(roce_frame(host, ip4(224, 0, 0, 5)), 0x01005e000005));
  CHECK(bed.taken() == Interfaces{0});
  bed.receive(0, to_mac(roce_frame(host, ip4(239, 0, 0, 5)), 0x01005e000005));
  CHECK(bed.taken().empty());
  CHECK(bed.count(&C::drop_router_multicast) == 1);
  CHECK(bed.count(&C::drop_router_bridged) == 0);
  // Port 2 has no twin.
  bed.receive(2, roce_frame(ip4(10, 0, 2, 9), ip4(10, 0, 2, 1)));
  CHECK(bed.taken().empty());
  bed.receive(2, to_mac(roce_frame(ip4(10, 0, 2, 9), ip4(224, 0, 0, 251)), 0x01005e0000fb));
  CHECK(bed.taken().empty());
  CHECK(bed.count(&C::drop_router_multicast) == 2);
}

TEST_CASE_TEMPLATE("router's kernel: hears who is in which group, also where that is told to the group itself", Bed, BedOf<1>,
                   BedOf<2>, BedOf<3>) {
  Bed bed(kernel_parameters());
  // IGMPv2: a report of 239.0.0.5 to 239.0.0.5.
  std::vector<uint8_t> report = to_mac(roce_frame(ip4(10, 0, 0, 9), ip4(239, 0, 0, 5)), 0x01005e000005);
  report[kEthernetHeader + 9] = 2;
  ip_set_length(&report[kEthernetHeader], static_cast<uint16_t>(report.size() - kEthernetHeader));
  bed.receive(0, report);
  CHECK(bed.taken() == Interfaces{0});
  // MLDv1: a report of ff0e::5 to ff0e::5, behind a hop-by-hop header with the router alert. Others with such a header are not.
  IpAddress group{.version = 6};
  group.bytes[0] = 0xff;
  group.bytes[1] = 0x0e;
  group.bytes[15] = 5;
  std::vector<uint8_t> mld = to_mac(roce_frame(ip6(0, 9), group), 0x333300000005);
  uint8_t* const ip = &mld[kEthernetHeader];
  ip[6] = 0;
  const uint8_t header[] = {kProtocolIcmpv6, 0, 5, 2, 0, 0, 1, 0, 131, 0};
  std::copy(std::begin(header), std::end(header), ip + kIpv6Header);
  bed.receive(0, mld);
  CHECK(bed.taken() == Interfaces{0});
  ip[kIpv6Header + 8] = 135;
  bed.receive(0, mld);
  CHECK(bed.taken().empty());
  mld.resize(kEthernetHeader + kIpv6Header + 8);
  store_be16(&mld[kEthernetHeader + 4], 8);
  bed.receive(0, mld);
  CHECK(bed.taken().empty());
  CHECK(bed.count(&C::drop_router_multicast) == 2);
}

TEST_CASE_TEMPLATE("router's kernel: answers who asks for the router, whose asker the router knows, too", Bed, BedOf<1>, BedOf<2>,
                   BedOf<3>) {
  Bed bed(kernel_parameters());
  std::vector<uint8_t> frame(kNeighbourFrame);
  frame.resize(build_neighbour_question(frame.data(), {.source_mac = kStation + 9}, ip4(10, 0, 0, 9), ip4(10, 0, 0, 1)));
  CHECK(bed.pass(0, frame).empty());
  CHECK(bed.taken() == Interfaces{0});
  const auto& neighbours = bed.neighbours();
  const uint32_t at = neighbours.find(4, 0, AddressBits::of(ip4(10, 0, 0, 9)));
  REQUIRE(at != NeighbourTable::kNone);
  CHECK(neighbours[at].mac == kStation + 9);
}

TEST_CASE_TEMPLATE("router's kernel: takes so many frames of a port, and others are counted", Bed, BedOf<1>, BedOf<2>, BedOf<3>) {
  Bed bed(kernel_parameters());
  for (Time i = 0; i < Router::kKernelBurst + 100; ++i) {
    bed.receive(0, roce_frame(ip4(10, 0, 0, 9), ip4(10, 0, 0, 1)));
    bed.taken();
  }
  CHECK(bed.count(&C::drop_kernel_rate) == 100);
  bed.receive(1, roce_frame(ip4(10, 0, 1, 9), ip4(10, 0, 1, 1), 0xc001, 64, 256, 20));
  CHECK(bed.taken() == Interfaces{1});
}

TEST_CASE_TEMPLATE("router's kernel: what it sends leaves by the port of the twin, with the tag of its VLAN", Bed, BedOf<1>,
                   BedOf<2>, BedOf<3>) {
  Bed bed(kernel_parameters());
  for (const uint16_t interface : {uint16_t{0}, uint16_t{1}}) {
    const std::vector<uint8_t> frame = to_mac(roce_frame(ip4(10, 0, 0, 1), ip4(10, 0, 0, 9)), kStation + 9);
    const PacketId id = bed.keep(interface, frame);
    bed.of(interface).routed().send_for_kernel(bed.now, interface, id);
    const std::vector<Sent> sent = bed.sent();
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].port == interface);
    CHECK(sent[0].meta.tagged == (interface == 1));
    CHECK(sent[0].meta.vlan() == (interface == 1 ? 20 : 0));
    CHECK(bed.of(interface).counters(interface).kernel_tx_packets == 1);
  }
  CHECK(bed.held() == 0);
  CHECK(bed.available() == bed.memory.shape().count);
}

TEST_CASE_TEMPLATE("router: routes that forward nothing, and routes without a gateway", Bed, BedOf<1>, BedOf<2>, BedOf<3>) {
  SwitchParameters p = kernel_parameters();
  p.router.routes = {{{ip4(10, 66, 0, 0), 16}, {}, RouteKind::blackhole},
                     {{ip4(10, 67, 0, 0), 16}, {}, RouteKind::unreachable},
                     {{ip4(10, 255, 0, 1), 32}, {}, RouteKind::own},
                     {{ip4(10, 8, 0, 0), 16}, {{2, ip4(10, 8, 0, 0), 1, true}}}};
  Bed bed(p);
  CHECK(bed.pass(0, roce_frame(ip4(10, 0, 0, 9), ip4(10, 66, 0, 1))).empty());
  CHECK(bed.count(&C::drop_blackhole) == 1);
  CHECK(bed.pass(0, roce_frame(ip4(10, 0, 0, 9), ip4(10, 67, 0, 1))).size() == 1);  // its source is told
  CHECK(bed.count(&C::drop_ip_no_route) == 1);
  CHECK(bed.pass(0, roce_frame(ip4(10, 0, 0, 9), ip4(10, 255, 0, 1))).empty());
  CHECK(bed.taken() == Interfaces{0});
  const std::vector<Sent> asked = bed.pass(0, roce_frame(ip4(10, 0, 0, 9), ip4(10, 8, 3, 4)));
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].port == 2);
  CHECK(asked[0].meta.ethertype == kEthertypeArp);
}
