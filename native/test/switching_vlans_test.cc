// A bridge with VLANs. Ports 0 and 1 have VLAN 10 untagged, port 2 has it tagged beside an untagged 20, port 3 has 20 tagged
// and takes nothing without a tag, port 4 is in none.
#include <algorithm>

#include "base/random.h"
#include "test/qcn_switch_harness.h"
#include "test/router_harness.h"

using namespace weir;
using namespace weir::test;
using C = SwitchPortCounters;

namespace {

constexpr uint64_t kBroadcast = 0xffffffffffff;

SwitchParameters vlan_parameters() {
  SwitchParameters p;
  for (size_t i = 0; i < 5; ++i) p.ports.push_back({1'000'000'000, 1'500, 0x025753000000 + i});
  for (size_t dscp = 0; dscp < 64; ++dscp) p.priority_map.dscp[dscp] = static_cast<uint8_t>(dscp & 7);
  p.learning = true;
  p.ports[0].vlans = PortVlans{.untagged = 10};
  p.ports[1].vlans = PortVlans{.untagged = 10};
  p.ports[2].vlans = PortVlans{.untagged = 20, .tagged = {10}};
  p.ports[3].vlans = PortVlans{.tagged = {20}};
  return p;
}

constexpr int kNoTag = -1;

// Makes a frame from station `from` to a MAC address. `tci`: that of its tag.
std::vector<uint8_t> frame_of(uint8_t from, uint64_t to, int tci = kNoTag, uint32_t payload = 256) {
  std::vector<uint8_t> frame = roce_frame(ip4(10, 0, 0, from), ip4(10, 0, 0, 99), 0xc001, 64, payload);
  store_be48(frame.data(), to);
  if (tci == kNoTag) return frame;
  const std::array<uint8_t, 4> tag{0x81, 0x00, static_cast<uint8_t>(tci >> 8), static_cast<uint8_t>(tci)};
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  return frame;
}

// Ports where frames left, and the tag that each had.
std::vector<std::pair<int, int>> places(const std::vector<Sent>& sent) {
  std::vector<std::pair<int, int>> found;
  for (const Sent& one : sent) {
    CHECK(icrc_ok(one.bytes.data(), one.meta));
    found.push_back({one.port, one.meta.tagged ? one.meta.vlan_tci : kNoTag});
  }
  std::ranges::sort(found);
  return found;
}

using Places = std::vector<std::pair<int, int>>;

}  // namespace

TEST_CASE("VLANs: a frame reaches the members of its own, with the tag that each is to see") {
  RouterHarness bed(vlan_parameters());
  // Frames without a tag are of VLAN 10 at port 0, of 20 at port 2. The tag that one gets has its priority, 3.
  CHECK(places(bed.pass(0, frame_of(1, kBroadcast))) == Places{{1, kNoTag}, {2, 3 << 13 | 10}});
  CHECK(places(bed.pass(2, frame_of(2, kBroadcast))) == Places{{3, 3 << 13 | 20}});
  // A frame with a tag keeps its priority and drop eligibility where the tag stays.
  CHECK(places(bed.pass(2, frame_of(3, kBroadcast, 0xb000 | 10))) == Places{{0, kNoTag}, {1, kNoTag}});
  CHECK(places(bed.pass(3, frame_of(4, kBroadcast, 0xb000 | 20))) == Places{{2, kNoTag}});
  // A tag with a priority and no VLAN is none; a member of an untagged VLAN may tag it.
  CHECK(places(bed.pass(0, frame_of(1, kBroadcast, 5 << 13))) == Places{{1, kNoTag}, {2, 5 << 13 | 10}});
  CHECK(places(bed.pass(0, frame_of(1, kBroadcast, 1 << 13 | 10))) == Places{{1, kNoTag}, {2, 1 << 13 | 10}});
  CHECK(bed.count(&C::drop_no_route) == 0);
  bed.check_balance();
}

TEST_CASE("VLANs: what comes in of another, or without any, is dropped and counted, and not learned") {
  RouterHarness bed(vlan_parameters());
  for (const int vlan : {1, 20, 4094, 4095}) CHECK(bed.pass(0, frame_of(1, kBroadcast, vlan)).empty());
  CHECK(bed.of(0).counters(0).drop_vlan_not_member == 4);
  CHECK(bed.pass(3, frame_of(3, kBroadcast)).empty());
  CHECK(bed.pass(3, frame_of(3, kBroadcast, 6 << 13)).empty());
  CHECK(bed.of(3).counters(3).drop_vlan_untagged == 2);
  CHECK(bed.pass(4, frame_of(4, kBroadcast)).empty());
  CHECK(bed.pass(4, frame_of(4, kBroadcast, 10)).empty());
  CHECK(bed.of(4).counters(4).drop_vlan_untagged == 1);
  CHECK(bed.of(4).counters(4).drop_vlan_not_member == 1);
  for (uint16_t port = 0; port < 5; ++port) CHECK(bed.of(port).forwarding().learned(port) == 0);
  bed.check_balance();
}

TEST_CASE("VLANs: one address is somewhere else in each") {
  RouterHarness bed(vlan_parameters());
  bed.pass(2, frame_of(7, kBroadcast));  // in 20, at port 2
  bed.pass(1, frame_of(7, kBroadcast));  // in 10, at port 1
  CHECK(places(bed.pass(0, frame_of(1, kStation + 7))) == Places{{1, kNoTag}});
  CHECK(places(bed.pass(3, frame_of(3, kStation + 7, 20))) == Places{{2, kNoTag}});
  bed.check_balance();
}

TEST_CASE("VLANs: a static entry that leads out of a frame's VLAN does not") {
  SwitchParameters p = vlan_parameters();
  RouterHarness bed(p);
  REQUIRE(bed.of(0).forwarding().add_static(kStation + 9, std::vector<uint16_t>{3}));
  CHECK(bed.pass(0, frame_of(1, kStation + 9)).empty());
  CHECK(bed.of(0).counters(0).drop_vlan_egress == 1);
  CHECK(places(bed.pass(2, frame_of(2, kStation + 9))) == Places{{3, 3 << 13 | 20}});
  bed.check_balance();
}

TEST_CASE("VLANs: other ones hold at once, and what was learned in the old ones is forgotten; without any, tags pass") {
  SwitchParameters p = vlan_parameters();
  RouterHarness bed(p);
  bed.pass(1, frame_of(7, kBroadcast));
  CHECK(places(bed.pass(0, frame_of(1, kStation + 7))) == Places{{1, kNoTag}});
  p.ports[1].vlans = PortVlans{.untagged = 20};
  bed.reconfigure(p);
  CHECK(places(bed.pass(0, frame_of(1, kStation + 7))) == Places{{2, 3 << 13 | 10}});
  p.ecn_priorities = 0;
  bed.reconfigure(p);  // the same VLANs: port 0's address is known still
  CHECK(places(bed.pass(2, frame_of(2, kStation + 1, 10))) == Places{{0, kNoTag}});
  for (SwitchParameters::Port& port : p.ports) port.vlans = {};
  bed.reconfigure(p);
  CHECK(places(bed.pass(0, frame_of(1, kBroadcast, 77))) == Places{{1, 77}, {2, 77}, {3, 77}, {4, 77}});
  bed.check_balance();
}

TEST_CASE("VLANs: the longest packet takes a tag, one that is longer than the port's MTU is dropped") {
  SwitchParameters p = vlan_parameters();
  p.ports[2].mtu = 400;
  RouterHarness bed(p);
  const auto overhead = static_cast<uint32_t>(frame_of(1, kBroadcast, kNoTag, 256).size()) - 256 - kEthernetHeader;
  CHECK(places(bed.pass(0, frame_of(1, kBroadcast, kNoTag, 400 - overhead))) == Places{{1, kNoTag}, {2, 3 << 13 | 10}});
  CHECK(places(bed.pass(0, frame_of(1, kBroadcast, kNoTag, 404 - overhead))) == Places{{1, kNoTag}});
  CHECK(bed.count(&C::drop_mtu_exceeded) == 1);
  bed.check_balance();
}

TEST_CASE("VLANs: an interface of the router is at the members of its own, tagged or not") {
  SwitchParameters p = vlan_parameters();
  p.router.mac = kRouterMac;
  p.router.interfaces.push_back({kAnyPort, 10, {{ip4(10, 0, 10, 1), 24}}});
  p.router.interfaces.push_back({kAnyPort, 20, {{ip4(10, 0, 20, 1), 24}}});
  p.router.interfaces.push_back({4, 0, {{ip4(10, 0, 4, 1), 24}}});
  RouterHarness bed(p);
  // A host that asks for it is answered as it asked.
  bed.introduce(0, ip4(10, 0, 10, 5), ip4(10, 0, 10, 1), kStation + 5);
  bed.introduce(3, ip4(10, 0, 20, 6), ip4(10, 0, 20, 1), kStation + 6, 20);
  bed.introduce(4, ip4(10, 0, 4, 7), ip4(10, 0, 4, 1), kStation + 7);
  CHECK(places(bed.pass(0, roce_frame(ip4(10, 0, 10, 5), ip4(10, 0, 20, 6)))) == Places{{3, 3 << 13 | 20}});
  CHECK(places(bed.pass(3, roce_frame(ip4(10, 0, 20, 6), ip4(10, 0, 10, 5), 0xc001, 64, 256, 20))) == Places{{0, kNoTag}});
  CHECK(places(bed.pass(0, roce_frame(ip4(10, 0, 10, 5), ip4(10, 0, 4, 7)))) == Places{{4, kNoTag}});
  CHECK(places(bed.pass(4, roce_frame(ip4(10, 0, 4, 7), ip4(10, 0, 20, 6)))) == Places{{3, 3 << 13 | 20}});
  // A port that routes is in no VLAN, and drops what it does not route as before.
  CHECK(bed.pass(4, frame_of(7, kBroadcast)).empty());
  CHECK(bed.of(4).counters(4).drop_router_multicast == 1);
  // A neighbour is asked for where the VLAN is, and an error finds back to a port without a tag.
  std::vector<Sent> sent = bed.pass(4, roce_frame(ip4(10, 0, 4, 7), ip4(10, 0, 10, 77)));
  Places asked;
  for (const Sent& one : sent) asked.push_back({one.port, one.meta.tagged ? one.meta.vlan() : kNoTag});
  std::ranges::sort(asked);
  CHECK(asked == Places{{0, kNoTag}, {1, kNoTag}, {2, 10}});
  sent = bed.pass(0, roce_frame(ip4(10, 0, 10, 5), ip4(10, 0, 20, 6), 0xc001, 1));
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].port == 0);
  CHECK(!sent[0].meta.tagged);
  CHECK(sent[0].meta.destination_mac == kStation + 5);
  CHECK(bed.count(&C::drop_vlan_egress) == 0);
  bed.check_balance();

  p.router.interfaces.push_back({kAnyPort, 0, {{ip4(10, 0, 30, 1), 24}}});
  CHECK_THROWS_WITH_AS(bed.reconfigure(p), doctest::Contains("router's interfaces without a port"), NativeError);
}

TEST_CASE("VLANs: a congestion notification finds back to where its frame came in, tagged or not") {
  SwitchParameters p = qcn_parameters(3);
  p.ports[0].vlans = PortVlans{.untagged = 10};
  p.ports[1].vlans = PortVlans{.tagged = {10}};
  p.ports[2].vlans = PortVlans{.untagged = 10};
  p.learning = true;
  SwitchHarness h(p, 8'192);
  PacketMeta tagged = meta(1, 2, 3);
  tagged.tagged = true;
  tagged.vlan_tci = 3 << 13 | 10;
  h.send(0, 2, 0, 0, 100);  // where 2 is
  for (int i = 0; i < 400; ++i) {
    h.receive(i, 0, meta(0, 2, 3));
    h.receive(i, 1, tagged, 1'004);
  }
  h.run(kSecond);
  std::array<int, 2> told{};
  for (const Departure& one : h.departures) {
    if (one.kind == FrameKind::cnm) ++told.at(one.port);
  }
  CHECK(told[0] > 0);
  CHECK(told[1] > 0);
  CHECK(h.dropped() == 0);
  h.check_drained();
}

TEST_CASE("VLANs: parameters that are none are refused") {
  for (const PortVlans& wrong : {PortVlans{.untagged = 4095}, PortVlans{.tagged = {0}}, PortVlans{.tagged = {4095}},
                                 PortVlans{.untagged = 5, .tagged = {5}}}) {
    SwitchParameters p = vlan_parameters();
    p.ports[1].vlans = wrong;
    CHECK_THROWS_AS(check(p), NativeError);
  }
}

TEST_CASE("VLANs: whatever comes, nothing leaves its VLAN") {
  Random random(7);
  SwitchParameters p = vlan_parameters();
  RouterHarness bed(p);
  const auto is_member = [&](uint16_t port, int vlan) {
    const PortVlans own = p.ports[port].vlans.value_or(PortVlans{});
    return own.untagged == vlan || std::ranges::find(own.tagged, vlan) != own.tagged.end();
  };
  for (int i = 0; i < 5'000; ++i) {
    const auto from = static_cast<uint16_t>(random.next() % 5);
    const int vlan = static_cast<int>(std::array{kNoTag, 0, 10, 20, 30}[random.next() % 5]);
    const uint64_t to = random.next() % 4 == 0 ? kBroadcast : kStation + random.next() % 8;
    const int of = vlan > 0 ? vlan : p.ports[from].vlans.value_or(PortVlans{}).untagged;
    for (const Sent& one : bed.pass(from, frame_of(static_cast<uint8_t>(random.next() % 8), to, vlan))) {
      REQUIRE(of != 0);
      REQUIRE(is_member(from, of));
      REQUIRE(is_member(one.port, of));
      REQUIRE(one.meta.tagged == (p.ports[one.port].vlans->untagged != of));
      REQUIRE((!one.meta.tagged || one.meta.vlan() == of));
    }
  }
  bed.check_balance();
}
