// A switch that routes, of one shard or several that one thread drives, with frames that have all their bytes. Port i is shard
// i mod n's.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "switching/exchange.h"
#include "switching/wire_switch.h"
#include "test/rig/frames.h"
#include "wire/classify.h"
#include "wire/ecn.h"
#include "wire/icmp.h"
#include "wire/icrc.h"
#include "wire/neighbour.h"
#include "wire/packet_pool.h"
#include "wire/roce_builder.h"

namespace weir::test {

inline constexpr uint64_t kRouterMac = 0x025752000001;
inline constexpr uint64_t kStation = 0x025745000000;  // + number

inline IpAddress ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) { return {.version = 4, .bytes = {a, b, c, d}}; }
// fd00:NET::HOST
inline IpAddress ip6(uint8_t net, uint8_t host) {
  IpAddress address{.version = 6};
  address.bytes[0] = 0xfd;
  address.bytes[3] = net;
  address.bytes[15] = host;
  return address;
}

// Ports 0 to 2 have a link of their own, 10.0.PORT.1/24 and fd00:PORT::1/64; ports 3 and 4 bridge, and share VLAN 7
// with 10.0.7.1/24.
inline SwitchParameters router_parameters(size_t ports = 5) {
  SwitchParameters p;
  for (size_t i = 0; i < ports; ++i) p.ports.push_back({1'000'000'000, 1'500, 0x025753000000 + i});
  for (size_t dscp = 0; dscp < 64; ++dscp) p.priority_map.dscp[dscp] = static_cast<uint8_t>(dscp & 7);
  p.learning = true;
  p.router.mac = kRouterMac;
  for (uint8_t port = 0; port < 3; ++port) {
    p.router.interfaces.push_back({port, 0, {{ip4(10, 0, port, 1), 24}, {ip6(port, 1), 64}}});
  }
  if (ports > 3) p.router.interfaces.push_back({kAnyPort, 7, {{ip4(10, 0, 7, 1), 24}}});
  return p;
}

struct Sent {
  uint16_t port;
  PacketMeta meta;
  std::vector<uint8_t> bytes;
  const uint8_t* ip() const { return bytes.data() + meta.l3_offset; }
};

class RouterHarness {
 public:
  explicit RouterHarness(const SwitchParameters& parameters, uint32_t packets = 4'096, uint32_t shards = 1)
      : memory({.count = packets * shards, .stride = 2'048}), exchange(owners(parameters.ports.size(), shards), shards, packets) {
    for (uint32_t i = 0; i < shards; ++i) {
      pools.push_back(std::make_unique<PacketPool>(memory, i, shards));
      wires.push_back(std::make_unique<WireSwitch>(parameters, *pools[i], shards > 1 ? &exchange.link(i) : nullptr));
    }
  }

  static std::vector<uint8_t> owners(size_t ports, uint32_t shards) {
    std::vector<uint8_t> owner(ports);
    for (size_t i = 0; i < ports; ++i) owner[i] = static_cast<uint8_t>(i % shards);
    return owner;
  }
  SoftSwitch& of(uint16_t port) { return wires[port % wires.size()]->device; }
  PacketPool& pool_of(uint16_t port) { return *pools[port % pools.size()]; }
  // Table of shard `shard`.
  const NeighbourTable& neighbours(uint32_t shard = 0) { return wires[shard]->device.routed().router()->neighbours; }
  void reconfigure(const SwitchParameters& parameters) {
    for (const auto& each : wires) each->device.reconfigure(parameters);
  }

  void receive(uint16_t port, std::vector<uint8_t> bytes) {
    const PacketId id = keep(port, bytes);
    of(port).receive(now, port, id);
    settle();
  }
  // A packet of the port's shard, which has lived up to now.
  PacketId keep(uint16_t port, const std::vector<uint8_t>& bytes) {
    PacketPool& pool = pool_of(port);
    const PacketId id = pool.allocate();
    REQUIRE(id != kNoPacket);
    pool[id] = Packet{};
    std::memcpy(pool.data(id), bytes.data(), bytes.size());
    pool[id].length = static_cast<uint32_t>(bytes.size());
    classify(pool.data(id), pool[id].length, pool[id].meta);
    wires[port % wires.size()]->advance(now);
    return id;
  }
  // All shards live up to now, until none has anything to tell.
  void settle() {
    uint64_t told = 1;
    for (int round = 0; told != 0; ++round) {
      REQUIRE(round < 100);
      told = 0;
      for (const auto& wire : wires) {
        wire->device.begin_turn();
        wire->advance(now);
        told |= wire->device.end_turn();
      }
    }
  }
  // Lets so much time pass; returns what left meanwhile.
  std::vector<Sent> after(Time time) {
    std::vector<Sent> sent;
    const Time until = now + time;
    while (now < until) {
      Time next = kNever;
      for (const auto& wire : wires) next = std::min(next, wire->next_deadline());
      now = std::min(until, std::max(now + 1, next));
      settle();
      for (uint16_t port = 0; port < of(0).port_count(); ++port) {
        WireSwitch& wire = *wires[port % wires.size()];
        PacketPool& pool = pool_of(port);
        for (PacketId id = wire.transmit(port); id != kNoPacket; id = wire.transmit(port)) {
          if (pool[id].meta.ecn_changed) write_ecn(pool.data(id), pool[id].meta);
          Sent one{port, {}, {pool.data(id), pool.data(id) + pool[id].length}};
          CHECK(classify(one.bytes.data(), pool[id].length, one.meta) == Refusal::none);
          sent.push_back(std::move(one));
          wire.device.left(port, id);
          pool.free(id);
        }
        wire.device.set_unsent(port, 0);
      }
      settle();
    }
    return sent;
  }
  std::vector<Sent> sent() { return after(kMillisecond); }
  std::vector<Sent> pass(uint16_t port, std::vector<uint8_t> bytes) {
    receive(port, std::move(bytes));
    return sent();
  }
  // Station `host` of the link of `port` asks for the router, which so knows it.
  void introduce(uint16_t port, const IpAddress& host, const IpAddress& router, uint64_t mac, uint16_t vlan = 0) {
    std::vector<uint8_t> frame(kNeighbourFrame);
    const LinkHeader link{.source_mac = mac, .tagged = vlan != 0, .vlan_tci = vlan};
    frame.resize(build_neighbour_question(frame.data(), link, host, router));
    const std::vector<Sent> answers = pass(port, frame);
    const auto answer = std::find_if(answers.begin(), answers.end(), [&](const Sent& one) { return one.port == port; });
    REQUIRE(answer != answers.end());
    NeighbourMessage message;
    REQUIRE(read_neighbour_message(answer->bytes.data(), static_cast<uint32_t>(answer->bytes.size()), answer->meta, message));
    CHECK(!message.asks);
    CHECK(message.mac == kRouterMac);
    CHECK(message.sender == router);
    CHECK(answer->meta.destination_mac == mac);
  }
  uint64_t count(uint64_t SwitchPortCounters::*what) {
    uint64_t sum = 0;
    for (uint16_t port = 0; port < of(0).port_count(); ++port) sum += of(port).counters(port).*what;
    return sum;
  }
  uint64_t held() {
    uint64_t sum = 0;
    for (const auto& wire : wires) sum += wire->device.held();
    return sum;
  }
  // Packets that nobody has.
  size_t available() {
    size_t sum = 0;
    for (const auto& pool : pools) sum += pool->available();
    return sum;
  }
  // Frames that came in or were made are sent, dropped, taken, or held; and every descriptor is somewhere.
  void check_balance() {
    uint64_t dropped = 0;
    for (uint16_t port = 0; port < of(0).port_count(); ++port) {
      dropped += of(port).counters(port).sum(CounterMeaning::drop);
    }
    using C = SwitchPortCounters;
    CHECK(count(&C::rx_packets) + count(&C::flood_copies) + count(&C::router_made_packets) ==
          count(&C::tx_packets) + dropped + count(&C::router_packets) + held());
    CHECK(available() + held() == memory.shape().count);
  }

  PacketMemory memory;
  Exchange exchange;
  std::vector<std::unique_ptr<PacketPool>> pools;
  std::vector<std::unique_ptr<WireSwitch>> wires;
  Time now = kSecond;
};

// One switch of that many workers: all do the same.
template <uint32_t kShards>
struct RouterOf : RouterHarness {
  explicit RouterOf(const SwitchParameters& parameters, uint32_t packets = 4'096) : RouterHarness(parameters, packets, kShards) {}
};

inline std::vector<uint8_t> roce_frame(const IpAddress& from, const IpAddress& to, uint16_t udp_source = 0xc001, uint8_t ttl = 64,
                                       uint32_t payload = 256, uint16_t vlan = 0) {
  RocePath path;
  path.destination_mac = kRouterMac;
  path.source_mac = kStation + from.bytes[from.version == 6 ? 15 : 3];
  path.tagged = vlan != 0;
  path.vlan_tci = static_cast<uint16_t>(3 << 13 | vlan);
  path.ip_version = from.version;
  std::memcpy(path.source_ip, from.bytes, 16);
  std::memcpy(path.destination_ip, to.bytes, 16);
  path.dscp = 3;
  path.ecn = 2;
  path.ttl = ttl;
  path.udp_source_port = udp_source;
  constexpr uint8_t kUnreliableSendOnly = 0x24;
  return roce(kUnreliableSendOnly).on(path).to(17).payload(payload, 0x5a).bytes();
}

}  // namespace weir::test
