#include <doctest/doctest.h>

#include <vector>

#include "test/qcn_switch_harness.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint8_t kAlternate = 1;
constexpr Tags kCnTagged{.cn_flow = 0x1234};

// Port 0 has the mode, all others are interior.
SwitchParameters defended(CnDefence defence) {
  SwitchParameters p = qcn_parameters(3);
  p.ports[0].cn_defence[kCnpv] = defence;
  p.ports[0].cn_alternate_priority[kCnpv] = kAlternate;
  return p;
}

}  // namespace

TEST_CASE("qcn defence: at an edge frames get the alternate priority, in their tag too, and meet no congestion point") {
  QcnHarness h(defended(CnDefence::edge));
  h.congest({0, 2}, 1, 100);  // at 0 from outside, at 2 from inside
  h.send(h.device.now(), 0, 1, kCnpv, {.vlan_tci = uint16_t{kCnpv << 13 | 1 << 12 | 7}});
  h.send(h.device.now(), 2, 1, kCnpv, {.vlan_tci = uint16_t{kCnpv << 13 | 7}});
  h.send(h.device.now(), 0, 1, 2);
  h.check_drained();
  CHECK(h.counters(0).cn_remapped_frames == 101);
  CHECK(h.counters(2).cn_remapped_frames == 0);
  CHECK(h.counters(1, kAlternate).queue_packets == 101);
  CHECK(h.counters(1, 2).queue_packets == 1);
  CHECK(h.counters(1).queue_packets == 101);
  CHECK(h.counters(1).cn_cp_transmitted_frames == 101);
  for (const Left& frame : h.cnms()) CHECK(frame.port == 2);
  std::vector<uint16_t> tags;
  for (const Left& frame : h.left) {
    if (!frame.packet.meta.tagged || frame.is_cnm()) continue;
    CHECK(load_be16(frame.bytes.data() + 14) == frame.packet.meta.vlan_tci);
    const bool outside = frame.packet.meta.source_mac == kHostMac;
    CHECK(frame.packet.meta.vlan_tci == (outside ? kAlternate << 13 | 1 << 12 | 7 : kCnpv << 13 | 7));
    tags.push_back(frame.packet.meta.vlan_tci);
  }
  CHECK(tags.size() == 2);
}

TEST_CASE("qcn defence: elsewhere frames keep their priority") {
  for (const CnDefence defence : {CnDefence::disabled, CnDefence::interior, CnDefence::interior_ready}) {
    QcnHarness h(defended(defence));
    h.congest({0}, 1, 10);
    h.check_drained();
    CHECK(h.counters(0).cn_remapped_frames == 0);
    CHECK(h.counters(1).queue_packets == 10);
    CHECK(h.counters(1).cn_cp_transmitted_frames == 10);
  }
}

TEST_CASE("qcn defence: the queue of a port has a congestion point unless it is disabled") {
  for (const CnDefence defence : {CnDefence::disabled, CnDefence::interior, CnDefence::interior_ready, CnDefence::edge}) {
    QcnHarness h(defended(defence));
    h.congest({1, 2}, 0, 100);
    h.check_drained();
    CHECK(h.cnms().empty() == (defence == CnDefence::disabled));
    CHECK(h.counters(0).cn_cp_transmitted_frames == (defence == CnDefence::disabled ? 0 : 200));
  }
}

TEST_CASE("qcn defence: CN-TAGs are taken off where the port is edge or interior, and stay elsewhere") {
  for (const CnDefence defence : {CnDefence::disabled, CnDefence::interior, CnDefence::interior_ready, CnDefence::edge}) {
    const bool taken = defence == CnDefence::interior || defence == CnDefence::edge;
    QcnHarness h(defended(defence));
    for (int i = 0; i < 3; ++i) h.send(0, 1, 0, kCnpv, kCnTagged);  // one passes, two wait
    h.send(0, 1, 0, kCnpv, {.vlan_tci = uint16_t{kCnpv << 13 | 7}, .cn_flow = 0x1234});
    h.send(0, 1, 0, kCnpv);
    h.run(10 * kFrameTime);
    REQUIRE(h.left.size() == 5);
    for (size_t i = 0; i < 5; ++i) {
      const Packet& packet = h.left[i].packet;
      PacketMeta meta;
      classify(h.left[i].bytes.data(), kHeaderStride, meta);
      CHECK(packet.meta.cn_tagged == (!taken && i < 4));
      CHECK(meta.cn_tagged == packet.meta.cn_tagged);
      CHECK(meta.tagged == (i == 3));
      CHECK(meta.ethertype == 0x88b5);
      CHECK(packet.length == (taken && i < 4 ? 996 : 1'000));
    }
    // A frame's tag takes no time on the link once it is off.
    CHECK(h.left[1].at == 2 * (taken ? kFrameTime - 32 : kFrameTime));
    CHECK(h.counters(0).cn_tags_removed == (taken ? 4 : 0));
    CHECK(h.counters(0).queue_bytes == (taken ? 5'000 - 16 : 5'000));
    h.check_drained();
  }
}

TEST_CASE("qcn defence: the CN-TAGs of other priorities and of CNMs stay") {
  QcnHarness h(defended(CnDefence::edge));
  h.send(0, 1, 0, 2, kCnTagged);
  h.receive_cnm(0, 1, 0, kCnpv, kCnTagged);
  h.run(10 * kFrameTime);
  REQUIRE(h.left.size() == 2);
  for (const Left& frame : h.left) CHECK(frame.packet.meta.cn_flow == 0x1234);
  h.check_drained();
}

TEST_CASE("qcn defence: a frame may be longer by its CN-TAG") {
  SwitchParameters p = qcn_parameters(2);
  p.ports[1].cn_defence[kCnpv] = CnDefence::interior_ready;
  QcnHarness h(p);
  h.send(0, 0, 1, kCnpv, kCnTagged, 1'518);
  h.send(0, 0, 1, kCnpv, kCnTagged, 1'519);
  h.send(0, 0, 1, kCnpv, {}, 1'515);
  h.check_drained();
  CHECK(h.left.size() == 1);
  CHECK(h.device.counters(0).drop_mtu_exceeded == 2);
}

TEST_CASE("qcn defence: CNMs from outside of the domain they are about are dropped and counted") {
  for (const CnDefence defence : {CnDefence::disabled, CnDefence::interior, CnDefence::interior_ready, CnDefence::edge}) {
    const bool outside = defence == CnDefence::disabled || defence == CnDefence::edge;
    QcnHarness h(defended(defence));
    h.receive_cnm(0, 0, 1, kCnpv);
    h.receive_cnm(0, 0, 1, kCnpv, {.vlan_tci = uint16_t{7 << 13 | 5}, .cn_flow = 0x1234});
    h.receive_cnm(0, 0, 1, 2);      // about a priority that is no CNPV here
    h.receive_cnm(0, 2, 1, kCnpv);  // from inside
    h.check_drained();
    CHECK(h.cnms().size() == (outside ? 2 : 4));
    CHECK(h.device.counters(0).drop_cnm_from_outside == (outside ? 2 : 0));
    CHECK(h.device.counters(2).drop_cnm_from_outside == 0);
    for (const Left& frame : h.cnms()) CHECK(frame.packet.priority == kCnmPriority);
  }
}

TEST_CASE("qcn defence: a priority is defended by itself") {
  SwitchParameters p = defended(CnDefence::edge);
  p.cn_priorities = 1 << kCnpv | 1 << 4;
  QcnHarness h(p);
  h.congest({0, 2}, 1, 50, 4);
  h.congest({0, 2}, 1, 50, kCnpv);
  h.receive_cnm(h.device.now(), 0, 1, 4);
  h.check_drained();
  CHECK(h.counters(0, 4).cn_remapped_frames == 0);
  CHECK(h.counters(0, kCnpv).cn_remapped_frames == 50);
  CHECK(h.counters(1, 4).cn_cp_transmitted_frames == 100);
  CHECK(h.counters(1, kCnpv).cn_cp_transmitted_frames == 50);
  CHECK(h.device.counters(0).drop_cnm_from_outside == 0);
}
