// The whole soft switch, per frame: a descriptor is taken and filled in as after classify(), received, looked up, learned from,
// admitted, marked, queued, scheduled, taken and freed. Learning, RED, PFC accounting, strict and weighted queues and the
// distributions of queue lengths are all on. No bytes are touched.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/bench_case.h"
#include "switching/wire_switch.h"
#include "wire/classify.h"
#include "wire/roce_builder.h"
#include "wire/super_frame.h"

namespace weir::bench {
namespace {

constexpr uint32_t kLength = 1'066;
constexpr Rate k10G = 10'000'000'000;
constexpr uint32_t kBatch = 32;  // frames that are received before what has left is taken
constexpr uint32_t kPackets = 2'048;
constexpr uint32_t kFlows = 16'384;

SwitchParameters parameters(uint16_t ports, Rate rate) {
  SwitchParameters p;
  for (uint16_t i = 0; i < ports; ++i) {
    SwitchParameters::Port& port = p.ports.emplace_back();
    port.rate = rate;
    port.mac = 0x025753000000ull + i;
  }
  for (size_t dscp = 0; dscp < 64; ++dscp) p.priority_map.dscp[dscp] = static_cast<uint8_t>(dscp >> 3);
  p.learning = true;
  return p;
}

PacketMeta frame(uint64_t source, uint64_t destination) {
  PacketMeta m;
  m.source_mac = 0x025745000000 + source;
  m.destination_mac = 0x025745000000 + destination;
  m.kind = FrameKind::roce;
  m.ethertype = 0x0800;
  m.ip_version = 4;
  m.l3_offset = 14;
  m.dscp = 26;
  m.ecn = 2;
  m.flow_hash = static_cast<uint32_t>(source * 2'654'435'761u);
  return m;
}

class Switch : public BenchCase {
 public:
  Switch(uint16_t ports, Rate rate) : pool_(kPackets, 0), wire_(parameters(ports, rate), pool_) {}

 protected:
  void receive(Time now, uint16_t in, const PacketMeta& meta) {
    const PacketId id = pool_.allocate();
    Packet& packet = pool_[id];
    packet.length = kLength;
    packet.offload = {};
    packet.meta = meta;
    wire_.catch_up(now);
    wire_.device.receive(now, in, id);
  }
  void collect(uint16_t port) {
    bool any = false;
    for (PacketId id = wire_.transmit(port); id != kNoPacket; id = wire_.transmit(port)) {
      keep(pool_[id].meta.ecn);
      wire_.device.left(port, id);
      pool_.free(id);
      any = true;
    }
    if (any) wire_.device.set_unsent(port, 0);
  }
  PacketPool pool_;
  WireSwitch wire_;
};

// As many stations as the forwarding table has entries; station s is at port s mod ports and sends to station s + 1. Links with a
// rate are loaded to 90%.
class Forward : public Switch {
 public:
  Forward(uint16_t ports, uint32_t entries, Rate rate) : Switch(ports, rate), ports_(ports) {
    const uint32_t stations = std::max<uint32_t>(entries / ports * ports, ports);
    for (uint64_t s = 0; s < stations; ++s) wire_.device.forwarding().learn(0, frame(s, 0), static_cast<uint16_t>(s % ports));
    for (uint64_t i = 0; i < kFlows / ports * ports; ++i) {
      // Ports in turn, stations of a port at random.
      const uint64_t s = (random_.next() % stations) / ports * ports + i % ports;
      flows_.push_back(frame(s, (s + 1) % stations));
    }
    gap_ = rate > 0 ? static_cast<double>(wire_bytes(kLength)) * 8e9 / (0.9 * static_cast<double>(rate) * ports) : 300;
  }
  void run(uint64_t count) override {
    while (count > 0) {
      const uint64_t batch = std::min<uint64_t>(count, kBatch);
      for (uint64_t i = 0; i < batch; ++i) {
        now_ += gap_;
        const auto in = static_cast<uint16_t>(next_ % ports_);
        receive(static_cast<Time>(now_), in, flows_[next_]);
        if (++next_ == flows_.size()) next_ = 0;
      }
      for (uint16_t port = 0; port < ports_; ++port) collect(port);
      count -= batch;
    }
  }

 private:
  uint16_t ports_;
  Random random_{1};
  std::vector<PacketMeta> flows_;
  size_t next_ = 0;
  double gap_;
  double now_ = 0;
};

// The same from port 0 to port 1 with headers in memory, as they are just after classify(), bridged or routed: to a station on
// the router's link, or by 64 ways of one of 100,000 routes.
class Route : public BenchCase {
 public:
  enum class How : uint8_t { bridged, to_link, by_routes };
  explicit Route(How how) : pool_(kPackets, kHeaderStride), wire_(with_router(how), pool_), by_routes_(how == How::by_routes) {
    wire_.device.forwarding().learn(0, frame(1, 0), 1);
    RocePath path;
    path.source_mac = 0x025745000000;
    path.destination_mac = how == How::bridged ? 0x025745000001 : kRouter;
    path.dscp = 26;
    path.ecn = 2;
    const RoceTemplate headers(path);
    DataHeader data;
    data.opcode = 0x24;
    headers.build_headers(bytes_.data(), data, 1'024);
    uint8_t* const ip = bytes_.data() + kEthernetHeader;
    store_be32(ip + 12, 0x0a000005);
    store_be32(ip + 16, 0x0a010005);
    ip_set_length(ip, static_cast<uint16_t>(ip_total_length(ip)));
    meta_ = frame(0, 1);
    meta_.destination_mac = path.destination_mac;
  }
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      const PacketId id = pool_.allocate();
      Packet& packet = pool_[id];
      packet.length = kLength;
      packet.offload = {};
      packet.meta = meta_;
      packet.meta.flow_hash = next_ * 2'654'435'761u;
      std::memcpy(pool_.data(id), bytes_.data(), 64);
      if (by_routes_) store_be32(pool_.data(id) + kEthernetHeader + 16, 0xac000000 | (next_ * 6'151 % 100'000) << 8);
      if (++next_ == kFlows) next_ = 0;
      wire_.catch_up(now_ += 300);
      wire_.device.receive(now_, 0, id);
      if (i % kBatch != kBatch - 1 && i + 1 != count) continue;
      for (PacketId sent = wire_.transmit(1); sent != kNoPacket; sent = wire_.transmit(1)) {
        wire_.device.left(1, sent);
        pool_.free(sent);
      }
      wire_.device.set_unsent(1, 0);
    }
  }

 private:
  static constexpr uint64_t kRouter = 0x025752000001;
  static SwitchParameters with_router(How how) {
    SwitchParameters p = parameters(2, 0);
    if (how == How::bridged) return p;
    RouterParameters& router = p.router;
    router.mac = kRouter;
    const auto ip = [](uint32_t bits) {
      IpAddress address;
      store_be32(address.bytes, bits);
      return address;
    };
    router.interfaces = {{0, 0, {{ip(0x0a000001), 24}}}, {1, 0, {{ip(0x0a010001), 24}}}};
    for (uint32_t i = 5; i < 5 + 64; ++i) router.neighbours.push_back({ip(0x0a010000 + i), 1, 1, 0x025745000000ull + i});
    if (how == How::to_link) return p;
    std::vector<RouterParameters::Way> ways;
    for (uint32_t i = 5; i < 5 + 64; ++i) ways.push_back({1, ip(0x0a010000 + i), 1});
    for (uint32_t i = 0; i < 100'000; ++i) router.routes.push_back({{ip(0xac000000 | i << 8), 24}, ways});
    return p;
  }
  PacketPool pool_;
  WireSwitch wire_;
  std::array<uint8_t, kHeaderStride> bytes_{};
  PacketMeta meta_;
  bool by_routes_;
  uint32_t next_ = 0;
  Time now_ = 0;
};

// A packet in a super-frame of so many that passes whole, from the offload's check and classify() on.
class SuperFrame : public BenchCase {
 public:
  explicit SuperFrame(uint32_t packets) : packets_(packets), memory_({kBatch, kHeaderStride, 0, kBatch}), pool_(memory_) {
    wire_.device.forwarding().learn(0, frame(1, 0), 1);
    RocePath path;
    path.source_mac = 0x025745000000;
    path.destination_mac = 0x025745000001;
    path.dscp = 26;
    path.ecn = 2;
    const std::vector<uint8_t> payload(1'024);
    std::vector<std::array<uint8_t, kMaxHeaders + 1'024>> all(packets);
    SuperFrameJoin join;
    for (uint32_t i = 0; i < packets; ++i) {
      DataHeader data;
      data.opcode = kOpcodeRcSendOnly;
      data.psn = i;
      const uint32_t length = RoceTemplate(path).build_data(all[i].data(), data, payload.data(), 1'024, static_cast<uint16_t>(i));
      const bool joined = i == 0 ? join.begin(all[i].data(), length) : join.add(all[i].data(), length);
      assert(joined);
      length_ += i == 0 ? length : length - join.header_length();
    }
    bytes_ = all[0];
    join.finish(bytes_.data(), offload_);
  }
  void run(uint64_t count) override {
    for (uint64_t done = 0, frames = 1; done < count; done += packets_, ++frames) {
      const PacketId id = pool_.allocate(length_);
      Packet& packet = pool_[id];
      packet.reset();
      packet.length = length_;
      packet.offload = offload_;
      std::memcpy(pool_.data(id), bytes_.data(), kHeaderStride);
      const bool fits = check_offload(pool_.data(id), length_, packet.offload);
      assert(fits);
      classify(pool_.data(id), length_, packet.meta);
      wire_.catch_up(now_ += 300);
      wire_.device.receive(now_, 0, id);
      if (frames % kBatch != 0 && done + packets_ < count) continue;
      for (PacketId sent = wire_.transmit(1); sent != kNoPacket; sent = wire_.transmit(1)) {
        wire_.device.left(1, sent);
        pool_.free(sent);
      }
      wire_.device.set_unsent(1, 0);
    }
    assert(wire_.device.counters(0).gso_segmented == 0);
  }

 private:
  static SwitchParameters whole() {
    SwitchParameters p = parameters(2, 0);
    for (SwitchParameters::Port& port : p.ports) port.offloads = true;
    return p;
  }
  uint32_t packets_;
  PacketMemory memory_;
  PacketPool pool_;
  WireSwitch wire_{whole(), pool_};
  std::array<uint8_t, kMaxHeaders + 1'024> bytes_;
  uint32_t length_ = 0;
  Offload offload_;
  Time now_ = 0;
};

// Three ports send to a fourth just as fast as it sends on, behind a standing queue of about 100 KB in which RED draws.
class Queue : public Switch {
 public:
  Queue() : Switch(4, k10G) {
    for (uint64_t s = 0; s < 4; ++s) {
      wire_.device.forwarding().learn(0, frame(s, 0), static_cast<uint16_t>(s));
      flows_.push_back(frame(s, 3));
    }
    for (int i = 0; i < 94; ++i) receive(0, static_cast<uint16_t>(i % 3), flows_[static_cast<size_t>(i % 3)]);
  }
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t in = next_ % 3;
      // Whole frame times by integers: the queue never runs empty.
      const auto now = static_cast<Time>(++next_ * wire_bytes(kLength) * 8 / 10);
      receive(now, static_cast<uint16_t>(in), flows_[in]);
      if (next_ % kBatch == 0) collect(3);
    }
  }

 private:
  std::vector<PacketMeta> flows_;
  uint64_t next_ = 0;
};

}  // namespace

void define_soft_switch_cases(BenchList& list) {
  for (const uint16_t ports : {uint16_t{2}, uint16_t{8}, uint16_t{64}}) {
    define<Forward>(list, "soft switch, " + std::to_string(ports) + " ports", ports, uint32_t{ports}, Rate{0});
  }
  for (const uint32_t entries : {1'000u, 10'000u}) {
    define<Forward>(list, "soft switch, 8 ports, " + std::to_string(entries) + " stations", uint16_t{8}, entries, Rate{0});
  }
  for (const uint16_t ports : {uint16_t{2}, uint16_t{64}}) {
    define<Forward>(list, "soft switch at 10 Gb/s, " + std::to_string(ports) + " ports", ports, uint32_t{ports}, k10G);
  }
  define<Route>(list, "soft switch with headers, bridged", Route::How::bridged);
  define<Route>(list, "soft switch with headers, routed", Route::How::to_link);
  define<Route>(list, "soft switch with headers, routed by 64 ways of 100000 routes", Route::How::by_routes);
  for (const uint32_t packets : {2u, 15u, 62u}) {
    define<SuperFrame>(list, "soft switch, packet of a super-frame of " + std::to_string(packets), packets);
  }
  define<Queue>(list, "soft switch at 10 Gb/s, standing queue");
}

}  // namespace weir::bench
