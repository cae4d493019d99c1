// The whole soft switch, per frame: a descriptor is taken and filled in as after classify(), received, looked up, learned from,
// admitted, marked, queued, scheduled, taken and freed. Learning, RED, PFC accounting, strict and weighted queues and the
// distributions of queue lengths are all on. No bytes are touched.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/bench_case.h"
#include "switching/wire_switch.h"

namespace weir::bench {
namespace {

constexpr uint32_t kLength = 1'066;
constexpr Rate k10G = 10'000'000'000;
constexpr uint32_t kBatch = 32;  // frames that are received before what has left is taken
constexpr uint32_t kPackets = 2'048;
constexpr uint32_t kFlows = 16'384;

SwitchParameters parameters(uint16_t ports, Rate rate) {
  SwitchParameters p;
  for (uint16_t i = 0; i < ports; ++i) p.ports.push_back({rate, 1'500, 0x025753000000ull + i});
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
  define<Queue>(list, "soft switch at 10 Gb/s, standing queue");
}

}  // namespace weir::bench
