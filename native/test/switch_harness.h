// Drives a SoftSwitch in virtual time with frames that are descriptors only, and remembers what left.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "switching/wire_switch.h"
#include "test/rates.h"
#include "wire/packet_pool.h"

namespace weir::test {

inline constexpr uint64_t kHostMac = 0x025745000000;  // + index; host i is at port i

struct Departure {
  Time at = 0;  // when it was collected; exact with SwitchHarness::run()
  uint16_t port = 0;
  FrameKind kind = FrameKind::other;
  uint32_t psn = 0;
  uint32_t length = 0;
  uint8_t ecn = 0;
  uint8_t pfc_enable = 0;
  uint8_t pfc_xoff = 0;
  uint16_t ingress = 0;
  bool operator==(const Departure&) const = default;
};

// All ports 1 Gb/s, static routes host i -> port i, priority = DSCP.
inline SwitchParameters switch_parameters(size_t ports) {
  SwitchParameters p;
  for (size_t i = 0; i < ports; ++i) p.ports.push_back({k1G, 1'500, 0x025753000000 + i});
  for (size_t dscp = 0; dscp < 64; ++dscp) p.priority_map.dscp[dscp] = static_cast<uint8_t>(dscp & 7);
  p.fdb_capacity = 64;
  return p;
}

inline PacketMeta meta(uint16_t from, uint16_t to, uint8_t priority) {
  PacketMeta m;
  m.source_mac = kHostMac + from;
  m.destination_mac = kHostMac + to;
  m.kind = FrameKind::roce;
  m.ip_version = 4;
  m.dscp = priority;
  m.ecn = 2;
  return m;
}

class SwitchHarness {
 public:
  explicit SwitchHarness(const SwitchParameters& parameters, uint32_t packets = 8'192)
      : pool(packets, kHeaderStride), wire(parameters, pool) {
    if (parameters.learning) return;
    for (uint16_t i = 0; i < parameters.ports.size(); ++i) {
      REQUIRE(device.forwarding().add_static(kHostMac + i, std::vector<uint16_t>{i}));
    }
  }

  void receive(Time now, uint16_t port, PacketMeta m, uint32_t length = 1'000) {
    const PacketId id = pool.allocate();
    REQUIRE(id != kNoPacket);
    pool[id] = Packet{};
    pool[id].meta = m;
    pool[id].meta.psn = ++received;
    pool[id].length = length;
    wire.advance(now);
    device.receive(now, port, id);
  }
  void receive_pfc(Time now, uint16_t port, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta) {
    wire.advance(now);
    device.pauses().receive_pfc(now, port, enable, quanta);
  }
  void receive_pause(Time now, uint16_t port, uint16_t quanta) {
    wire.advance(now);
    device.pauses().receive_pause(now, port, quanta);
  }
  void send(Time now, uint16_t from, uint16_t to, uint8_t priority = 3, uint32_t length = 1'000) {
    receive(now, from, meta(from, to, priority), length);
  }
  // Takes what has left.
  void collect() {
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      do {
        for (PacketId id = wire.transmit(port); id != kNoPacket; id = wire.transmit(port)) {
          const Packet& p = pool[id];
          departures.push_back(
              {device.now(), port, p.meta.kind, p.meta.psn, p.length, p.meta.ecn, p.pfc_enable, p.pfc_xoff, p.ingress_port});
          device.left(port, id);
          pool.free(id);
        }
      } while (device.set_unsent(port, 0));
    }
  }
  // Event by event up to `until`: Departure::at is then the time at which the last bit left.
  void run(Time until) {
    uint64_t events = 0;
    for (Time at = wire.next_deadline(); at <= until; at = wire.next_deadline()) {
      REQUIRE(++events < 5'000'000);
      wire.advance(at);
      collect();
    }
    wire.advance(until);
    collect();
  }
  std::vector<Departure> at_port(uint16_t port) const {
    std::vector<Departure> found;
    for (const Departure& d : departures) {
      if (d.port == port) found.push_back(d);
    }
    return found;
  }
  uint64_t dropped() {
    uint64_t sum = 0;
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      sum += device.counters(port).sum(CounterMeaning::drop);
    }
    return sum;
  }
  // received (and copied, and made: CNMs) = sent + dropped + held, and every descriptor is somewhere.
  void check_balance() {
    uint64_t in = 0;
    uint64_t out = 0;
    uint64_t by_queue = 0;
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      in += device.counters(port).rx_packets + device.counters(port).flood_copies;
      out += device.counters(port).tx_packets;
      for (int p = 0; p < kPriorities; ++p) {
        in += device.counters(port, p).cn_cp_transmitted_cnms;
        by_queue += device.counters(port, p).queue_packets;
      }
    }
    CHECK(in == out + dropped() + device.held());
    CHECK(by_queue == out);
  }
  // Everything that can leave has left.
  void check_drained() {
    check_balance();
    CHECK(device.held() == 0);
    CHECK(device.buffer().occupied() == 0);
    CHECK(pool.available() == pool.size());
  }

  PacketPool pool;
  WireSwitch wire;
  SoftSwitch& device = wire.device;
  std::vector<Departure> departures;
  uint32_t received = 0;
};

}  // namespace weir::test
