// One switch as several shards that are driven in virtual time by one thread. Ports are dealt out in turn: port i is shard i mod
// n's.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "switching/exchange.h"
#include "test/switch_harness.h"
#include "wire/packet_pool.h"

namespace weir::test {

class ShardHarness {
 public:
  explicit ShardHarness(const SwitchParameters& parameters, uint32_t count = 2, uint32_t packets = 8'192)
      : memory({.count = packets * count, .stride = kHeaderStride}),
        exchange(owners(parameters.ports.size(), count), count, packets) {
    for (uint32_t i = 0; i < count; ++i) {
      pools.push_back(std::make_unique<PacketPool>(memory, i, count));
      wires.push_back(std::make_unique<WireSwitch>(parameters, *pools[i], &exchange.link(i)));
      shards.push_back(&wires[i]->device);
      for (uint16_t port = 0; !parameters.learning && port < parameters.ports.size(); ++port) {
        REQUIRE(shards[i]->forwarding().add_static(kHostMac + port, std::vector<uint16_t>{port}));
      }
    }
  }

  static std::vector<uint8_t> owners(size_t ports, uint32_t count) {
    std::vector<uint8_t> owner(ports);
    for (size_t i = 0; i < ports; ++i) owner[i] = static_cast<uint8_t>(i % count);
    return owner;
  }
  SoftSwitch& of(uint16_t port) { return *shards[port % shards.size()]; }
  size_t ports() { return shards[0]->port_count(); }

  // All shards live up to `now`, until none has anything to tell.
  void settle(Time now) {
    uint64_t told = 1;
    for (int round = 0; told != 0; ++round) {
      REQUIRE(round < 100);
      told = 0;
      for (uint32_t i = 0; i < shards.size(); ++i) {
        shards[i]->begin_turn();
        wires[i]->advance(now);
        collect(i);
        told |= shards[i]->end_turn();
      }
    }
  }
  // Event by event.
  void run(Time until) {
    for (uint64_t events = 0;; ++events) {
      REQUIRE(events < 5'000'000);
      Time at = kNever;
      for (const auto& wire : wires) at = std::min(at, wire->next_deadline());
      if (at > until) break;
      settle(at);
    }
    settle(until);
  }
  void receive(Time now, uint16_t port, PacketMeta m, uint32_t length = 1'000) {
    PacketPool& pool = *pools[port % shards.size()];
    const PacketId id = pool.allocate();
    REQUIRE(id != kNoPacket);
    pool[id].reset();
    pool[id].meta = m;
    pool[id].meta.psn = ++received;
    pool[id].length = length;
    wires[port % wires.size()]->advance(now);
    of(port).receive(now, port, id);
    settle(now);
  }
  void send(Time now, uint16_t from, uint16_t to, uint8_t priority = 3, uint32_t length = 1'000) {
    receive(now, from, meta(from, to, priority), length);
  }
  void collect(uint32_t shard) {
    WireSwitch& wire = *wires[shard];
    SoftSwitch& device = wire.device;
    PacketPool& pool = *pools[shard];
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      do {
        for (PacketId id = wire.transmit(port); id != kNoPacket; id = wire.transmit(port)) {
          const Packet& p = pool[id];
          CHECK(device.owns(port));
          departures.push_back(
              {device.now(), port, p.meta.kind, p.meta.psn, p.length, p.meta.ecn, p.pfc_enable, p.pfc_xoff, p.ingress_port});
          device.left(port, id);
          pool.free(id);
        }
      } while (device.set_unsent(port, 0));
    }
  }
  std::vector<Departure> at_port(uint16_t port) const {
    std::vector<Departure> found;
    for (const Departure& d : departures) {
      if (d.port == port) found.push_back(d);
    }
    return found;
  }
  uint64_t sum(uint64_t SwitchPortCounters::*counter) {
    uint64_t total = 0;
    for (uint16_t port = 0; port < ports(); ++port) total += of(port).counters(port).*counter;
    return total;
  }
  uint64_t dropped() {
    uint64_t total = 0;
    for (uint16_t port = 0; port < ports(); ++port) {
      total += of(port).counters(port).sum(CounterMeaning::drop);
    }
    return total;
  }
  uint64_t cnms() {
    uint64_t total = 0;
    for (uint16_t port = 0; port < ports(); ++port) {
      for (int p = 0; p < kPriorities; ++p) total += of(port).counters(port, p).cn_cp_transmitted_cnms;
    }
    return total;
  }
  // received (and copied, and made) = sent + dropped + held, once all has been told. Another shard holds lent frames.
  void check_balance() {
    uint64_t held = 0;
    for (const auto& shard : shards) held += shard->held();
    CHECK(sum(&SwitchPortCounters::rx_packets) + sum(&SwitchPortCounters::flood_copies) + cnms() ==
          sum(&SwitchPortCounters::tx_packets) + dropped() + held);
  }
  // Everything that can leave has left, and every packet is at home.
  void check_drained() {
    check_balance();
    for (size_t i = 0; i < shards.size(); ++i) {
      CHECK(shards[i]->held() == 0);
      CHECK(shards[i]->lent() == 0);
      CHECK(shards[i]->buffer().occupied() == 0);
      CHECK(shards[i]->buffer().own().in_headroom == 0);
      CHECK(pools[i]->available() == pools[i]->size());
      for (uint16_t port = 0; port < ports(); ++port) {
        for (int p = 0; p < kPriorities; ++p) {
          CHECK(shards[i]->buffer().ingress_bytes(port, p) == 0);
          CHECK(shards[i]->queue_bytes(port, p) == 0);
        }
      }
    }
  }

  PacketMemory memory;
  Exchange exchange;
  std::vector<std::unique_ptr<PacketPool>> pools;
  std::vector<std::unique_ptr<WireSwitch>> wires;
  std::vector<SoftSwitch*> shards;
  std::vector<Departure> departures;
  uint32_t received = 0;
};

}  // namespace weir::test
