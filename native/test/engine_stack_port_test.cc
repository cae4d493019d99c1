// A NIC between its link and its host's own stack: frames of both, super-frames, checksums left to the interface, CN-TAGs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/nic_device.h"
#include "test/nic_harness.h"
#include "test/qcn_harness.h"
#include "test/rig/port.h"
#include "test/stack_frames.h"
#include "wire/mac_control.h"
#include "wire/neighbour.h"
#include "wire/qcn.h"

namespace weir::test {
namespace {

using Bytes = std::vector<uint8_t>;

struct Rig {
  explicit Rig(NicParameters parameters = nic_parameters(1'000'000'000), bool offloads = true, uint32_t short_packets = 256)
      : memory({.count = short_packets, .stride = 2'048, .long_count = 4}), pool(memory) {
    parameters.stack_queue = 1 << 20;
    config.name = "h1";
    config.parameters = parameters;
    config.arrears = kSecond;
    config.port.offloads = offloads;
    config.neighbours = {.addresses = {{.address = {.bytes = {10, 0, 0, 1}}}}};
    config.stack_port.emplace();
    config.stack_port->name = "stack";
    config.stack_port->offloads = offloads;
    device =
        std::make_unique<NicDevice>(config, uint16_t{0}, WirePort(std::make_unique<ScriptedPort>(link), 0, 0, 512), pool, punted,
                                    records, 0, std::make_unique<WirePort>(std::make_unique<ScriptedPort>(stack), 0, 0, 512));
    link.mtu = stack.mtu = 1'500;
    for (WirePort& port : device->ports()) port.check(0);
  }
  void turn(Time at) { device->turn(at, at); }
  NicCounters& counters() { return device->soft_nic().counters(); }
  // Frames that the stack gave are nowhere else.
  bool conserved() {
    const NicCounters& c = counters();
    uint64_t known = c.drop_stack_refused + c.drop_stack_control + c.drop_stack_mtu_exceeded + c.drop_stack_no_descriptor;
    for (int p = 0; p < kPriorities; ++p) {
      known += device->soft_nic().counters(p).tx_prio_stack_packets + device->soft_nic().counters(p).tx_prio_stack_discard;
    }
    return c.stack_tx_packets == known && memory_is_free();
  }
  bool memory_is_free() const { return pool.available() == pool.size(); }

  PacketMemory memory;
  PacketPool pool;
  FrameRing punted{64};
  SpscRing<Record> records{16};
  NicDeviceConfig config;
  PortScript link;
  PortScript stack;
  std::unique_ptr<NicDevice> device;
};

}  // namespace

TEST_CASE("stack port: frames pass both ways with the checksums that their senders left to the interface") {
  Rig rig;
  const Bytes out = partial_tcp({}), in = partial_tcp({.to = kNicMac, .from = kPeerMac});
  rig.stack.give(10'000, out, partial_offload());
  rig.link.give(10'000, in, partial_offload());
  rig.turn(kMillisecond);
  REQUIRE(rig.link.sent.size() == 1);
  CHECK(rig.link.sent[0].bytes == out);
  CHECK(rig.link.sent[0].offload.needs_checksum);
  REQUIRE(rig.stack.sent.size() == 1);
  CHECK(rig.stack.sent[0].bytes == in);
  CHECK(rig.stack.sent[0].offload.needs_checksum);
  CHECK(rig.counters().stack_rx_packets == 1);
  CHECK(rig.punted.empty());
  CHECK(rig.conserved());
}

TEST_CASE("stack port: checksums are finished where a port does not pass that work on") {
  Rig rig(nic_parameters(1'000'000'000), false);
  rig.stack.give(10'000, partial_tcp({}), partial_offload());
  rig.link.give(10'000, partial_tcp({.to = kNicMac, .from = kPeerMac}), partial_offload());
  rig.turn(kMillisecond);
  for (const auto* sent : {&rig.link.sent, &rig.stack.sent}) {
    REQUIRE(sent->size() == 1);
    CHECK(tcp_checksum_ok(sent->front().bytes));
    CHECK(!sent->front().offload.pending());
  }
}

TEST_CASE("stack port: a super-frame is cut as it is sent, and others take their turns between its segments") {
  Rig rig;
  const Bytes whole = partial_tcp({.payload = 10'500});
  rig.stack.give(10'000, whole, partial_offload(1'000));
  rig.stack.give(10'001, finished_tcp({.port = 40'001, .payload = 1'000, .sequence = 77}));
  rig.turn(kMillisecond);
  REQUIRE(rig.link.sent.size() == 12);
  Bytes payload;
  for (size_t i = 0; i < 12; ++i) {
    const Bytes& frame = rig.link.sent[i].bytes;
    CHECK(!rig.link.sent[i].offload.pending());
    CHECK(tcp_checksum_ok(frame));
    if (load_be16(&frame[kTcpAt]) == 40'001) {
      CHECK(i == 2);  // one segment was on the link, and one had its turn before
      continue;
    }
    CHECK(load_be32(&frame[kTcpAt + 4]) == payload.size());
    payload.insert(payload.end(), frame.begin() + kTcpAt + kTcpHeader, frame.end());
  }
  CHECK(payload == Bytes(whole.begin() + kTcpAt + kTcpHeader, whole.end()));
  CHECK(rig.counters().stack_tx_packets == 12);
  CHECK(rig.conserved());
}

TEST_CASE("stack port: a super-frame to the stack arrives as the frames that it stands for") {
  Rig rig;
  rig.link.give(10'000, partial_tcp({.to = kNicMac, .from = kPeerMac, .payload = 3'500}), partial_offload(1'000));
  rig.link.give(20'000, partial_tcp({.to = kPeerMac, .from = kPeerMac + 1, .payload = 3'500}), partial_offload(1'000));
  rig.turn(kMillisecond);
  REQUIRE(rig.stack.sent.size() == 4);
  for (const auto& [bytes, offload] : rig.stack.sent) CHECK(tcp_checksum_ok(bytes));
  CHECK(rig.counters().rx_packets == 8);
  CHECK(rig.counters().drop_not_for_us == 4);
  CHECK(rig.memory_is_free());
}

TEST_CASE("stack port: what no NIC sends for its host, or cannot, is dropped and counted by reason") {
  Rig rig(nic_parameters(1'000'000'000), true, 8);
  Bytes pause(kMinimumFrame);
  build_pfc(pause.data(), kNicMac, PfcFrame{});
  rig.stack.give(1'000, pause);
  Bytes cnm(kCnmMaxLength);
  cnm.resize(build_cnm(cnm.data(), {.destination_mac = kPeerMac, .source_mac = kNicMac}, CongestionNotification{}));
  rig.stack.give(1'000, cnm);
  rig.stack.give(1'000, Bytes(13));
  Offload outside = partial_offload();
  outside.checksum_start = 5'000;
  rig.stack.give(1'000, partial_tcp({}), outside);
  rig.stack.give(1'000, finished_tcp({.payload = 1'461}));
  rig.stack.give(1'000, partial_tcp({.payload = 4'000}), partial_offload(1'461));
  rig.stack.give(1'000, finished_tcp({.payload = 1'460}));
  rig.turn(100'000);
  CHECK(rig.counters().drop_stack_control == 2);
  CHECK(rig.counters().drop_stack_refused == 2);
  CHECK(rig.counters().drop_stack_mtu_exceeded == 2);
  CHECK(rig.link.sent.size() == 1);
  CHECK(rig.counters().stack_tx_packets == 7);
  CHECK(rig.conserved());
  for (int i = 0; i < 20; ++i) rig.stack.give(kMillisecond, finished_tcp({}));
  rig.turn(kMillisecond);
  CHECK(rig.counters().drop_stack_no_descriptor >= 12);
  rig.turn(2 * kMillisecond);
  rig.turn(3 * kMillisecond);
  CHECK(rig.conserved());
}

TEST_CASE("stack port: a datagram that looks like a CNM is the stack's, unless CNMs come so here") {
  PacketPool pool(1, 2'048);
  const PacketId id = pool.allocate();
  pool[id].reset();
  const Bytes sampled = finished_tcp({.to = kNicMac, .from = kPeerMac});
  const Bytes message = cnm({.flow = std::nullopt, .to = kPeerMac, .msdu = std::span(sampled).subspan(12, 40)});
  std::copy(message.begin(), message.end(), pool.data(id));
  pool[id].length = static_cast<uint32_t>(message.size());
  REQUIRE(classify(pool.data(id), pool[id].length, pool[id].meta) == Refusal::none);
  REQUIRE(wrap_cnm(pool, id, {.version = 4, .bytes = {10, 0, 0, 9}}, 0, 64));
  const Bytes datagram(pool.data(id), pool.data(id) + pool[id].length);
  for (const bool by_ip : {false, true}) {
    CAPTURE(by_ip);
    NicParameters parameters = qcn_parameters(k1G);
    parameters.grouping.cnms_by_ip = by_ip;
    Rig rig(parameters);
    rig.stack.give(1'000, datagram);
    rig.turn(kMillisecond);
    CHECK(rig.link.sent.size() == (by_ip ? 0 : 1));
    CHECK(rig.counters().drop_stack_control == (by_ip ? 1 : 0));
  }
}

TEST_CASE("stack port: a stack that takes no frames, or is down, costs those that are for it, and each is counted") {
  Rig rig;
  rig.stack.room = 0;
  for (uint32_t i = 0; i < 200; ++i) {
    rig.link.give(1'000 + i, finished_tcp({.to = kNicMac, .from = kPeerMac, .sequence = i}));
  }
  rig.turn(kMillisecond);
  CHECK(rig.stack.sent.empty());
  const uint64_t full = rig.counters().drop_stack_rx_full;
  CHECK(full > 0);
  rig.stack.room = kAnyNumber;
  rig.turn(20 * kMillisecond);
  CHECK(rig.stack.sent.size() + full == 200);
  CHECK(rig.counters().stack_rx_packets == rig.stack.sent.size());
  rig.stack.state = PortState::down;
  rig.device->ports().back().check(kSecond);
  rig.link.give(kSecond, finished_tcp({.to = kNicMac, .from = kPeerMac}));
  rig.turn(kSecond);
  CHECK(rig.counters().drop_stack_rx_down == 1);
  CHECK(rig.memory_is_free());
}

TEST_CASE("stack port: the NIC hears of neighbours, connection management of unreachable peers, and both of nothing else") {
  Rig rig;
  const IpAddress own{.bytes = {10, 0, 0, 1}}, peer{.bytes = {10, 0, 0, 2}};
  Bytes arp(kNeighbourFrame);
  arp.resize(build_neighbour_question(arp.data(), {.source_mac = kPeerMac}, peer, own));
  const auto icmp = [](uint8_t type) {
    Bytes frame = finished_tcp({.to = kNicMac, .from = kPeerMac});
    frame[kEthernetHeader + 9] = 1;
    ip_set_length(&frame[kEthernetHeader], static_cast<uint16_t>(frame.size() - kEthernetHeader));
    frame[kTcpAt] = type;
    return frame;
  };
  for (const Bytes& frame : {arp, icmp(3), icmp(8), finished_tcp({.to = kNicMac, .from = kPeerMac})}) {
    rig.link.give(1'000, frame);
  }
  rig.turn(kMillisecond);
  CHECK(rig.stack.sent.size() == 4);
  // The stack answers.
  CHECK(rig.link.sent.empty());
  CHECK(rig.device->neighbours()->table().size() == 1);
  PuntedFrame frame;
  REQUIRE(rig.punted.pop(frame));
  CHECK(Bytes(frame.bytes, frame.bytes + frame.length) == icmp(3));
  CHECK(rig.punted.empty());
  CHECK(rig.counters().rx_punted == 2);
}

TEST_CASE("stack port: CN-TAGs end at the NIC, tags that the kernel took out are put back") {
  Rig rig;
  Bytes tagged = finished_tcp({.to = kNicMac, .from = kPeerMac});
  const Bytes plain = tagged;
  tagged.insert(tagged.begin() + 12, {0x22, 0xe9, 0x00, 0x05});
  rig.link.give(1'000, tagged);
  rig.link.give_tagged(2'000, plain, 0x6005);
  rig.turn(kMillisecond);
  REQUIRE(rig.stack.sent.size() == 2);
  CHECK(rig.stack.sent[0].bytes == plain);
  Bytes back = plain;
  back.insert(back.begin() + 12, {0x81, 0x00, 0x60, 0x05});
  CHECK(rig.stack.sent[1].bytes == back);
}

}  // namespace weir::test
