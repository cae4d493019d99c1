// Drives a SoftSwitch with congestion points in virtual time, with frames that have their headers, and keeps those that left.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "test/switch_harness.h"
#include "wire/classify.h"
#include "wire/packet_pool.h"
#include "wire/qcn.h"

namespace weir::test {

inline constexpr Time kFrameTime = 8'192;  // time of 1000 bytes at 1 Gb/s
inline constexpr uint8_t kCnpv = 3;
inline constexpr uint8_t kCnmPriority = 6;

// Samples often and without jitter.
inline SwitchParameters qcn_parameters(size_t ports) {
  SwitchParameters p = switch_parameters(ports);
  p.cn_priorities = 1 << kCnpv;
  p.qcn.cp_sample_base = 10'000;
  p.qcn.cp_queue_set_point = 5'000;
  p.qcn.jitter = 0;
  p.ecn_priorities = p.pfc_priorities = 0;
  return p;
}

struct Tags {
  std::optional<uint16_t> vlan_tci = {};
  std::optional<uint16_t> cn_flow = {};
};

struct Left {
  Time at;
  uint16_t port;
  Packet packet;
  std::array<uint8_t, kHeaderStride> bytes;

  bool is_cnm() const { return packet.meta.kind == FrameKind::cnm; }
  // Content of a CNM; the MSDU points into this.
  CongestionNotification cnm() const {
    CongestionNotification content;
    REQUIRE(parse_cnm(bytes.data(), packet.length, content));
    return content;
  }
};

// A switch whose frames have headers, and what left it.
class QcnHarness {
 public:
  explicit QcnHarness(const SwitchParameters& parameters, uint32_t packets = 8'192)
      : pool(packets, kHeaderStride), wire(parameters, pool) {
    for (uint16_t i = 0; i < parameters.ports.size(); ++i) {
      REQUIRE(device.forwarding().add_static(kHostMac + i, std::vector<uint16_t>{i}));
    }
  }

  void send(Time now, uint16_t from, uint16_t to, uint8_t priority = kCnpv, const Tags& tags = {}, uint32_t length = 1'000) {
    receive_frame(now, from, kHostMac + from, kHostMac + to, priority, tags, length);
  }
  void receive_frame(Time now, uint16_t port, uint64_t source, uint64_t destination, uint8_t priority, const Tags& tags = {},
                     uint32_t length = 1'000) {
    const PacketId id = pool.allocate();
    REQUIRE(id != kNoPacket);
    Packet& packet = pool[id];
    packet.reset();
    uint8_t* bytes = pool.data(id);
    std::memset(bytes, 0x5a, kHeaderStride);
    store_ethernet(bytes, {destination, source, tags.vlan_tci.has_value(), tags.vlan_tci.value_or(0), tags.cn_flow}, 0x88b5);
    packet.length = length;
    classify(bytes, length, packet.meta);
    packet.meta.ip_version = 4;  // makes its DSCP count
    packet.meta.dscp = priority;
    wire.advance(now);
    device.receive(now, port, id);
    collect();
  }
  void receive_cnm(Time now, uint16_t port, uint16_t to, uint8_t about, const Tags& tags = {}) {
    LinkHeader envelope{.destination_mac = kHostMac + to, .source_mac = 0x025753ffff00, .cn_flow = tags.cn_flow};
    envelope.tagged = tags.vlan_tci.has_value();
    envelope.vlan_tci = tags.vlan_tci.value_or(0);
    const PacketId id = pool.allocate();
    REQUIRE(id != kNoPacket);
    pool[id].reset();
    pool[id].length = build_cnm(pool.data(id), envelope, {.quantized_feedback = 7, .priority = about, .msdu = {}});
    classify(pool.data(id), pool[id].length, pool[id].meta);
    REQUIRE(pool[id].meta.kind == FrameKind::cnm);
    wire.advance(now);
    device.receive(now, port, id);
    collect();
  }
  // Receives a frame that another switch sent.
  void receive(Time now, uint16_t port, const Left& frame) {
    const PacketId id = pool.allocate();
    REQUIRE(id != kNoPacket);
    pool[id].reset();
    pool[id].length = frame.packet.length;
    std::memcpy(pool.data(id), frame.bytes.data(), kHeaderStride);
    classify(pool.data(id), pool[id].length, pool[id].meta);
    wire.advance(now);
    device.receive(now, port, id);
    collect();
  }
  void collect() {
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      do {
        for (PacketId id = wire.transmit(port); id != kNoPacket; id = wire.transmit(port)) {
          Left& frame = left.emplace_back(Left{device.now(), port, pool[id], {}});
          std::memcpy(frame.bytes.data(), pool.data(id), kHeaderStride);
          device.left(port, id);
          pool.free(id);
        }
      } while (device.set_unsent(port, 0));
    }
  }
  void run(Time until) {
    for (Time at = wire.next_deadline(); at <= until; at = wire.next_deadline()) {
      wire.advance(at);
      collect();
    }
    wire.advance(until);
    collect();
  }
  // `count` frames of each sender at its link's rate, all to `to`.
  void congest(const std::vector<uint16_t>& senders, uint16_t to, int count, uint8_t priority = kCnpv, const Tags& tags = {}) {
    for (int i = 0; i < count; ++i) {
      const Time at = device.now() + kFrameTime;
      run(at);
      for (const uint16_t from : senders) send(at, from, to, priority, tags);
    }
  }
  std::vector<Left> cnms() const {
    std::vector<Left> found;
    for (const Left& frame : left) {
      if (frame.is_cnm()) found.push_back(frame);
    }
    return found;
  }
  SwitchPriorityCounters& counters(uint16_t port, int priority = kCnpv) { return device.counters(port, priority); }
  void check_drained() {
    run(device.now() + kSecond);
    CHECK(device.held() == 0);
    CHECK(device.buffer().occupied() == 0);
    CHECK(pool.available() == pool.size());
    uint64_t in = 0, out = 0;
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      const SwitchPortCounters& c = device.counters(port);
      in += c.rx_packets;
      out += c.tx_packets + c.sum(CounterMeaning::drop);
      for (int p = 0; p < kPriorities; ++p) in += counters(port, p).cn_cp_transmitted_cnms;
    }
    CHECK(in == out);
  }

  PacketPool pool;
  WireSwitch wire;
  SoftSwitch& device = wire.device;
  std::vector<Left> left;
};

}  // namespace weir::test
