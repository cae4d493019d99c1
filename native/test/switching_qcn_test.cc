#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "test/qcn_switch_harness.h"
#include "test/shard_harness.h"

using namespace weir;
using namespace weir::test;

TEST_CASE("qcn switch: the source of a sampled frame gets a CNM that says what the congestion point saw") {
  SwitchParameters p = qcn_parameters(3);
  p.cp_min_header_octets = 20;
  QcnHarness h(p);
  // The same congestion point, beside: the queue grows by a frame for every two that come.
  QcnCongestionPoint point;
  point.configure(&p.qcn, Random(1));
  struct Expected {
    uint16_t from;
    QcnFeedback feedback;
  };
  std::vector<Expected> expected;
  for (int i = 0; i < 100; ++i) {
    const Time at = h.device.now() + kFrameTime;
    h.run(at);
    for (const uint16_t from : {0, 2}) {
      const int64_t queue = h.device.queue_bytes(1, kCnpv) + 1'000;
      const QcnFeedback feedback = point.on_enqueue(queue, 1'000);
      if (feedback.quantized != 0) expected.push_back({from, feedback});
      h.send(at, from, 1);
    }
  }
  h.check_drained();
  const std::vector<Left> cnms = h.cnms();
  REQUIRE(expected.size() > 10);
  REQUIRE(cnms.size() == expected.size());
  for (size_t i = 0; i < cnms.size(); ++i) {
    const CongestionNotification cnm = cnms[i].cnm();
    const QcnFeedback& feedback = expected[i].feedback;
    CHECK(cnms[i].port == expected[i].from);
    CHECK(cnms[i].packet.meta.destination_mac == kHostMac + expected[i].from);
    CHECK(cnms[i].packet.meta.source_mac == p.ports[1].mac);
    CHECK_FALSE(cnms[i].packet.meta.tagged);
    CHECK_FALSE(cnms[i].packet.meta.cn_tagged);
    CHECK(cnm.quantized_feedback == feedback.quantized);
    CHECK(cnm.queue_offset == feedback.offset / kCnmUnit * kCnmUnit);
    CHECK(cnm.queue_delta == feedback.delta / kCnmUnit * kCnmUnit);
    CHECK(cnm.priority == kCnpv);
    CHECK(cnm.congestion_point == (p.ports[1].mac << 16 | 1 << 3 | kCnpv));
    CHECK(cnm.destination_mac == kHostMac + 1);
    REQUIRE(cnm.msdu.size() == 20);
    CHECK(load_be16(cnm.msdu.data()) == 0x88b5);
    CHECK(cnm.msdu[2] == 0x5a);
  }
  CHECK(h.counters(1).cn_cp_transmitted_frames == 200);
  CHECK(h.counters(1).cn_cp_transmitted_cnms == cnms.size());
  CHECK(h.counters(1).cn_cp_discarded_frames == 0);
  CHECK(h.counters(1).cn_cp_unsent_cnms == 0);
  // They came in by the congested port, and left at their own priority.
  CHECK(h.counters(1, kCnmPriority).pg_packets == cnms.size());
  CHECK(h.counters(0, kCnmPriority).queue_packets + h.counters(2, kCnmPriority).queue_packets == cnms.size());
  for (const uint16_t quiet : {0, 2}) {
    for (int priority = 0; priority < kPriorities; ++priority) CHECK(h.counters(quiet, priority).cn_cp_transmitted_frames == 0);
  }
}

TEST_CASE("qcn switch: nobody is told of a queue without congestion, of another priority, or where QCN is off or disabled") {
  SwitchParameters p = qcn_parameters(3);
  SUBCASE("no congestion") {
    QcnHarness h(p);
    h.congest({0}, 1, 100);
    CHECK(h.cnms().empty());
    CHECK(h.counters(1).cn_cp_transmitted_frames == 100);  // which pass an empty queue
    h.check_drained();
  }
  SUBCASE("another priority") {
    QcnHarness h(p);
    h.congest({0, 2}, 1, 100, 2);
    CHECK(h.cnms().empty());
    CHECK(h.counters(1, 2).cn_cp_transmitted_frames == 0);
  }
  SUBCASE("off") {
    p.cn_priorities = 0;
    QcnHarness h(p);
    h.congest({0, 2}, 1, 100);
    CHECK(h.cnms().empty());
  }
  SUBCASE("disabled at the congested port") {
    p.ports[1].cn_defence[kCnpv] = CnDefence::disabled;
    QcnHarness h(p);
    h.congest({0, 2}, 1, 100);
    CHECK(h.cnms().empty());
    CHECK(h.counters(1).cn_cp_transmitted_frames == 0);
  }
}

TEST_CASE("qcn switch: each queue has a congestion point of its own, at up to seven priorities") {
  SwitchParameters p = qcn_parameters(4);
  p.cn_priorities = 0x7f;
  p.cnm_priority = 7;
  p.scheduler.strict = 1 << 7;
  QcnHarness h(p);
  for (int i = 0; i < 600; ++i) {
    const Time at = h.device.now() + kFrameTime;
    h.run(at);
    for (const uint16_t from : {0, 2}) h.send(at, from, 1, static_cast<uint8_t>(i % 7));
    h.send(at, 3, 0, 0);
  }
  h.check_drained();
  std::array<uint64_t, 8> told{};
  for (const Left& frame : h.cnms()) {
    ++told[frame.cnm().priority];
    CHECK(frame.cnm().congestion_point == (p.ports[1].mac << 16 | 1 << 3 | frame.cnm().priority));
  }
  for (uint8_t priority = 0; priority < 7; ++priority) {
    CHECK(told[priority] > 5);
    CHECK(told[priority] == h.counters(1, priority).cn_cp_transmitted_cnms);
  }
  CHECK(told[7] == 0);
  CHECK(h.counters(0, 0).cn_cp_transmitted_cnms == 0);
}

TEST_CASE("qcn switch: a CNM has the VLAN and the CN-TAG of the sampled frame, and the priority of CNMs") {
  QcnHarness h(qcn_parameters(3));
  h.congest({0, 2}, 1, 50, kCnpv, {.vlan_tci = uint16_t{3 << 13 | 1 << 12 | 100}, .cn_flow = 0xbeef});
  h.check_drained();
  REQUIRE_FALSE(h.cnms().empty());
  for (const Left& frame : h.cnms()) {
    CHECK(frame.packet.meta.tagged);
    CHECK(frame.packet.meta.vlan_tci == (kCnmPriority << 13 | 100));
    CHECK(frame.packet.meta.cn_tagged);
    CHECK(frame.packet.meta.cn_flow == 0xbeef);
    CHECK(frame.cnm().msdu.empty());
  }
}

TEST_CASE("qcn switch: what a limited queue holds back is told to whoever fills it") {
  SwitchParameters p = qcn_parameters(3);
  p.ports[1].priority_rates[kCnpv] = k1G / 2;
  QcnHarness h(p);
  h.congest({0}, 1, 100);
  h.check_drained();
  REQUIRE_FALSE(h.cnms().empty());
  for (const Left& frame : h.cnms()) CHECK(frame.port == 0);
}

TEST_CASE("qcn switch: a passing CNM goes by its destination, at its own priority and ahead of data, and is not sampled") {
  SwitchParameters p = qcn_parameters(3);
  SUBCASE("without a tag") {}
  SUBCASE("where CNMs have a priority with congestion points") { p.cnm_priority = kCnpv; }
  SUBCASE("without QCN") { p.cn_priorities = 0; }
  SUBCASE("where the port's own priority counts") { p.priority_map.trust = PriorityMap::Trust::port; }
  QcnHarness h(p);
  if (p.cnm_priority == kCnpv) p.scheduler.strict = 1 << kCnpv;
  h.device.reconfigure(p);
  for (int i = 0; i < 50; ++i) h.send(0, 0, 1, 2);
  const uint64_t before = h.counters(1, p.cnm_priority).cn_cp_transmitted_frames;
  h.receive_cnm(kFrameTime / 2, 2, 1, kCnpv);
  h.receive_cnm(kFrameTime / 2, 2, 1, kCnpv, {.vlan_tci = uint16_t{0}});
  h.run(4 * kFrameTime);
  REQUIRE(h.cnms().size() == 2);
  for (const Left& frame : h.cnms()) {
    CHECK(frame.port == 1);
    CHECK(frame.packet.priority == p.cnm_priority);
    CHECK(frame.at < 3 * kFrameTime);
  }
  CHECK(h.counters(1, p.cnm_priority).cn_cp_transmitted_frames == before);
  h.check_drained();
}

TEST_CASE("qcn switch: a CNM finds its way through switches, also past those without QCN") {
  // Hosts 0 and 1 at the ports of the first switch, host 2 at port 2 of the last one, the ports 3 and 4 lead on.
  SwitchParameters p = qcn_parameters(5);
  p.qcn.jitter = 0.15;
  for (SwitchParameters::Port& port : p.ports) port.cn_defence.fill(CnDefence::interior_ready);
  SwitchParameters plain = p;
  plain.cn_priorities = 0;
  QcnHarness first(p), middle(plain), last(p);
  const auto route = [](QcnHarness& h, uint16_t back, uint16_t on) {
    h.device.forwarding().clear_static();
    for (const uint16_t host : {0, 1}) {
      const uint16_t out = back == kPriorities ? host : back;
      REQUIRE(h.device.forwarding().add_static(kHostMac + host, std::vector<uint16_t>{out}));
    }
    REQUIRE(h.device.forwarding().add_static(kHostMac + 2, std::vector<uint16_t>{on}));
  };
  route(first, kPriorities, 4);
  route(middle, 3, 4);
  route(last, 3, 2);
  p.ports[2].priority_rates[kCnpv] = k1G / 4;
  last.device.reconfigure(p);
  for (int i = 0; i < 200; ++i) {
    const Time at = (i + 1) * kFrameTime;
    for (QcnHarness* h : {&first, &middle, &last}) h->run(at);
    if (i % 2 == 0) first.send(at, static_cast<uint16_t>(i / 2 % 2), 2, kCnpv, {.cn_flow = static_cast<uint16_t>(i / 2 % 2)});
    const auto cable = [at](QcnHarness& from, uint16_t out, QcnHarness& to, uint16_t in) {
      for (Left& frame : from.left) {
        if (frame.port != out || frame.packet.length == 0) continue;
        if (frame.is_cnm()) {
          to.receive(at, in, frame);
        } else {
          to.receive_frame(at, in, frame.packet.meta.source_mac, frame.packet.meta.destination_mac, kCnpv,
                           {.cn_flow = frame.packet.meta.cn_flow});
        }
        frame.packet.length = 0;
      }
    };
    cable(first, 4, middle, 3);
    cable(middle, 4, last, 3);
    cable(last, 3, middle, 4);
    cable(middle, 3, first, 4);
  }
  const uint64_t made = last.counters(2).cn_cp_transmitted_cnms;
  CHECK(made > 5);
  CHECK(first.counters(4).cn_cp_transmitted_cnms == 0);
  std::array<uint64_t, 2> told{};
  for (const Left& frame : first.cnms()) {
    REQUIRE(frame.port < 2);
    ++told[frame.port];
    CHECK(frame.packet.meta.destination_mac == kHostMac + frame.port);
    CHECK(frame.packet.meta.cn_flow == frame.port);
    CHECK(frame.packet.meta.source_mac == p.ports[2].mac);
    CHECK(frame.packet.priority == kCnmPriority);
  }
  CHECK(told[0] + told[1] + 2 >= made);  // the last ones are under way
  CHECK(told[0] > 0);
  CHECK(told[1] > 0);
}

TEST_CASE("qcn switch: CNMs go on while PFC stops the data") {
  SwitchParameters p = qcn_parameters(3);
  p.pfc_priorities = 1 << kCnpv;
  p.buffer.threshold = BufferParameters::Threshold::fixed;
  p.buffer.fixed_threshold = 20'000;
  QcnHarness h(p);
  h.congest({0, 2}, 1, 20);
  // The peer of the congested port stops it: the queue grows with every frame, and the senders are stopped in their turn.
  const uint64_t sent = h.counters(1).queue_packets;
  h.device.pauses().receive_pfc(h.device.now(), 1, 1 << kCnpv, {0, 0, 0, 0xffff});
  const size_t before = h.cnms().size();
  h.congest({0, 2}, 1, 30);
  CHECK(h.counters(1).queue_packets <= sent + 1);
  CHECK(h.cnms().size() >= before + 3);
  CHECK(h.device.pauses().stopped(0, kCnpv));
  CHECK(h.device.pauses().stopped(2, kCnpv));
  CHECK_FALSE(h.device.pauses().stopped(1, kCnmPriority));
  // A sender that has stopped this switch at the data's priority is told nevertheless.
  h.device.pauses().receive_pfc(h.device.now(), 0, 1 << kCnpv, {0, 0, 0, 0xffff});
  h.device.pauses().receive_pfc(h.device.now(), 2, 1 << kCnpv, {0, 0, 0, 0xffff});
  const size_t paused = h.cnms().size();
  h.congest({0, 2}, 1, 5);
  CHECK(h.cnms().size() > paused);
  h.device.pauses().receive_pfc(h.device.now(), 1, 1 << kCnpv, {});
  h.check_drained();
  CHECK(h.counters(1).cn_cp_discarded_frames == 0);
  CHECK(h.counters(0).pfc_tx_transitions > 0);
}

TEST_CASE("qcn switch: what a full queue does not take is discarded, and counted at its congestion point") {
  SwitchParameters p = qcn_parameters(3);
  SUBCASE("by its own limit") { p.ports[1].queue_limits[kCnpv] = 8'000; }
  SUBCASE("by the lossy threshold") {
    p.buffer.total = 40'000;
    p.buffer.lossy_alpha = 0.25;
  }
  SUBCASE("by the buffer") {
    p.buffer.total = 10'000;
    p.buffer.lossy_alpha = 100;
  }
  QcnHarness h(p);
  h.congest({0, 2}, 1, 100);
  h.check_drained();
  const uint64_t discarded = h.counters(1).cn_cp_discarded_frames;
  CHECK(discarded > 50);
  CHECK(h.counters(1).cn_cp_transmitted_frames == 200 - discarded);
}

TEST_CASE("qcn switch: a CNM without a descriptor, or without anybody to go to, is counted and nothing else happens") {
  SwitchParameters p = qcn_parameters(3);
  SUBCASE("no descriptor") {
    // Frames are so long that every one is sampled once there are some.
    for (SwitchParameters::Port& port : p.ports) port.mtu = 9'000;
    QcnHarness h(p, 24);
    for (int i = 0; i < 6; ++i) h.send(0, 0, 1, kCnpv, {}, 9'000);
    const uint64_t sent = h.counters(1).cn_cp_transmitted_cnms;
    CHECK(sent > 2);
    CHECK(h.counters(1).cn_cp_unsent_cnms == 0);
    // Others have all packets but that of the next frame.
    std::vector<PacketId> taken;
    while (h.pool.available() > 1) taken.push_back(h.pool.allocate());
    h.send(0, 0, 1, kCnpv, {}, 9'000);
    CHECK(h.counters(1).cn_cp_unsent_cnms == 1);
    CHECK(h.counters(1).cn_cp_transmitted_cnms == sent);
    for (const PacketId id : taken) h.pool.free(id);
    h.check_drained();
  }
  SUBCASE("no source") {
    QcnHarness h(p);
    for (int i = 0; i < 100; ++i) h.receive_frame(0, 0, 0x0180c2000100, kHostMac + 1, kCnpv);
    h.check_drained();
    CHECK(h.cnms().empty());
    CHECK(h.counters(1).cn_cp_transmitted_cnms == 0);
    CHECK(h.counters(1).cn_cp_sourceless_frames > 3);
  }
}

TEST_CASE("qcn switch: a CNM that its egress has no room for is dropped as any frame, at the congested port") {
  SwitchParameters p = qcn_parameters(3);
  p.ports[0].queue_limits[kCnmPriority] = p.ports[2].queue_limits[kCnmPriority] = 50;
  QcnHarness h(p);
  h.congest({0, 2}, 1, 100);
  h.check_drained();
  CHECK(h.cnms().empty());
  CHECK(h.counters(1).cn_cp_transmitted_cnms > 5);
  CHECK(h.device.counters(1).drop_queue_limit == h.counters(1).cn_cp_transmitted_cnms);
}

TEST_CASE("qcn switch: shards tell sources at each other's ports what one switch would tell") {
  SwitchParameters p = qcn_parameters(5);
  p.qcn.jitter = 0.15;
  SwitchHarness whole(p);
  ShardHarness parts(p, 2);
  for (int i = 0; i < 200; ++i) {
    const Time at = (i + 1) * kFrameTime;
    whole.run(at);
    parts.run(at);
    for (const uint16_t from : {0, 2, 3}) {
      const PacketMeta frame = meta(from, 1, kCnpv);
      whole.receive(at, from, frame);
      parts.receive(at, from, frame);
    }
  }
  whole.run(kSecond);
  parts.run(kSecond);
  whole.check_drained();
  parts.check_drained();
  for (const uint16_t port : {0, 2, 3}) {
    CHECK(whole.at_port(port).size() > 3);
    CHECK(parts.at_port(port) == whole.at_port(port));
    CHECK(parts.of(port).counters(port, kCnmPriority).queue_packets == whole.device.counters(port, kCnmPriority).queue_packets);
  }
  const SwitchPriorityCounters& one = whole.device.counters(1, kCnpv);
  const SwitchPriorityCounters& other = parts.of(1).counters(1, kCnpv);
  CHECK(one.cn_cp_transmitted_frames == 600);
  CHECK(other.cn_cp_transmitted_frames == one.cn_cp_transmitted_frames);
  CHECK(other.cn_cp_transmitted_cnms == one.cn_cp_transmitted_cnms);
  CHECK(parts.of(1).counters(1, kCnmPriority).pg_packets == one.cn_cp_transmitted_cnms);
}

TEST_CASE("qcn switch: switched on while it runs, and off again, it leaves what is queued alone") {
  SwitchParameters p = qcn_parameters(3);
  SwitchParameters off = p;
  off.cn_priorities = 0;
  QcnHarness h(off);
  h.congest({0, 2}, 1, 30);
  CHECK(h.cnms().empty());
  h.device.reconfigure(p);
  h.congest({0, 2}, 1, 30);
  const size_t told = h.cnms().size();
  CHECK(told > 3);
  h.device.reconfigure(off);
  h.congest({0, 2}, 1, 30);
  CHECK(h.cnms().size() <= told + 1);
  h.check_drained();
  CHECK(h.counters(1).queue_packets == 180);
}
