// A switch makes of super-frames what it makes of the packets that they carry, one by one: what is forwarded, marked, dropped,
// paused and counted.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "switching/wire_switch.h"
#include "test/rig/frames.h"
#include "test/wire_fixtures.h"
#include "wire/classify.h"
#include "wire/ecn.h"
#include "wire/icrc.h"
#include "wire/roce_builder.h"
#include "wire/super_frame.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint64_t kHost = 0x025745000000;  // + index; host i is at port i
constexpr uint16_t kPortCount = 3;

SwitchParameters parameters() {
  SwitchParameters p;
  for (size_t i = 0; i < kPortCount; ++i) p.ports.push_back({0, 4'200, 0x025753000000 + i, true});
  for (size_t dscp = 0; dscp < 64; ++dscp) p.priority_map.dscp[dscp] = static_cast<uint8_t>(dscp & 7);
  p.ecn_priorities = p.pfc_priorities = 1 << 3;
  p.red.kmin = 20'000;
  p.red.kmax = 60'000;
  p.red.pmax = 0.3;
  p.buffer.total = 120'000;
  p.buffer.headroom = 8'000;
  p.buffer.priorities = 1;
  p.buffer.beta = 1;
  p.fdb_capacity = 64;
  return p;
}

Bytes packet(uint16_t from, uint16_t to, uint8_t priority, uint32_t psn, uint16_t identification, uint32_t payload) {
  RoceFrame frame = roce(kOpcodeRcSendOnly).on(path_to(kHost + to, kHost + from)).dscp(priority).to(0x11).psn(psn);
  return frame.identification(identification).payload(payload, static_cast<uint8_t>(psn)).bytes();
}

// A switch that gets super-frames, or the packets in them.
struct Side {
  explicit Side(bool whole) : whole(whole), memory({4'096, 4'352, 0, 64}), pool(memory), wire(parameters(), pool) {
    for (uint16_t i = 0; i < kPortCount; ++i) {
      REQUIRE(device.forwarding().add_static(kHost + i, std::vector<uint16_t>{i}));
    }
  }
  void put(uint16_t port, const Bytes& bytes, Offload offload) {
    const auto length = static_cast<uint32_t>(bytes.size());
    REQUIRE(check_offload(bytes.data(), length, offload));
    const PacketId id = pool.allocate(length);
    REQUIRE(id != kNoPacket);
    pool[id].reset();
    pool[id].length = length;
    pool[id].offload = offload;
    std::memcpy(pool.data(id), bytes.data(), bytes.size());
    classify(pool.data(id), length, pool[id].meta);
    device.receive(device.now(), port, id);
  }
  void receive(uint16_t port, const std::vector<Bytes>& packets) {
    SuperFrameJoin join;
    REQUIRE(join.begin(packets[0].data(), static_cast<uint32_t>(packets[0].size())));
    for (size_t i = 1; whole && i < packets.size(); ++i) {
      REQUIRE(join.add(packets[i].data(), static_cast<uint32_t>(packets[i].size())));
    }
    if (!whole || packets.size() == 1) {
      for (const Bytes& one : packets) put(port, one, {});
      return;
    }
    Bytes bytes(join.header_length());
    Offload offload;
    join.finish(bytes.data(), offload);
    for (const Bytes& one : packets) bytes.insert(bytes.end(), one.begin() + join.header_length(), one.end());
    put(port, bytes, offload);
  }
  // The host behind port 1 takes nothing, or all.
  void stall(bool stalled) {
    stalled_ = stalled;
    device.set_unsent(1, stalled ? 2 * kMostUnsent : 0);
  }
  // Collects the frames that have left, as packets.
  void collect() {
    for (uint16_t port = 0; port < kPortCount; ++port) {
      do {
        for (PacketId id = wire.transmit(port); id != kNoPacket; id = wire.transmit(port)) {
          Packet& p = pool[id];
          if (p.meta.kind == FrameKind::pfc) {
            pauses.emplace_back(port, p.pfc_enable << 8 | p.pfc_xoff);
          } else {
            if (p.meta.ecn_changed) write_ecn(pool.data(id), p.meta);
            left[port].insert(left[port].end(), carried_frames(p), {});
            for (uint32_t i = 0; i < carried_frames(p); ++i) {
              Bytes& out = left[port][left[port].size() - carried_frames(p) + i];
              out.assign(pool.data(id), pool.data(id) + p.length);
              if (p.offload.gso == Gso::none) continue;
              out.resize(4'352);
              out.resize(write_segment(pool.data(id), p.length, p.offload, i, out.data()));
            }
          }
          device.left(port, id);
          pool.free(id);
        }
      } while (!(stalled_ && port == 1) && device.set_unsent(port, 0));
    }
  }
  std::vector<Bytes> of(uint16_t port, int priority) const {
    std::vector<Bytes> frames;
    for (const Bytes& frame : left[port]) {
      if (frame[15] >> 2 == priority) frames.push_back(frame);
    }
    return frames;
  }
  void run_to(Time at) {
    wire.advance(at);
    collect();
  }

  bool whole;
  PacketMemory memory;
  PacketPool pool;
  WireSwitch wire;
  SoftSwitch& device = wire.device;
  std::vector<Bytes> left[kPortCount];
  std::vector<std::pair<uint16_t, int>> pauses;

 private:
  bool stalled_ = false;
};

bool is_of_super_frames(std::string_view counter) { return counter.starts_with("gso_"); }

}  // namespace

TEST_CASE("switch super-frames: packets, marks, pauses, drops and counters are those of single packets") {
  uint64_t passed = 0, segmented = 0, marked = 0, dropped = 0, paused = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Random random(seed, 1, 1);
    Side whole(true), single(false);
    Time now = 0;
    uint32_t psn = 0;
    uint16_t identification = 0;
    for (int event = 0; event < 60; ++event) {
      now += 1'000;
      whole.run_to(now);
      single.run_to(now);
      const uint64_t draw = random.next() % 10;
      if (draw < 7) {
        const auto from = static_cast<uint16_t>(random.next() % 2 == 0 ? 0 : 2);
        const auto priority = static_cast<uint8_t>(random.next() % 3 == 0 ? 0 : 3);
        std::vector<Bytes> packets(1 + random.next() % 15);
        for (Bytes& one : packets) {
          const bool last = &one == &packets.back();
          one = packet(from, 1, priority, psn++, identification++, last ? 700 : 1'000);
        }
        whole.receive(from, packets);
        single.receive(from, packets);
      } else {
        whole.stall(draw < 9);
        single.stall(draw < 9);
      }
      whole.collect();
      single.collect();
    }
    for (Side* side : {&whole, &single}) {
      side->stall(false);
      side->collect();
      side->run_to(now + kMillisecond);
      CHECK(side->device.held() == 0);
      CHECK(side->device.buffer().occupied() == 0);
      CHECK(side->pool.available() == side->pool.size());
    }
    for (uint16_t port = 0; port < kPortCount; ++port) {
      CAPTURE(port);
      // Queues take turns by the frame, be it a super-frame.
      for (const int priority : {0, 3}) CHECK(whole.of(port, priority) == single.of(port, priority));
      for (int i = 0; i < SwitchPortCounters::kCount; ++i) {
        const std::string_view name = SwitchPortCounters::kDescriptions[i].name;
        CAPTURE(name);
        if (!is_of_super_frames(name)) {
          CHECK(whole.device.counters(port).words()[i] == single.device.counters(port).words()[i]);
        }
      }
      dropped += whole.device.counters(port).sum(CounterMeaning::drop);
      for (int priority = 0; priority < kPriorities; ++priority) {
        for (int i = 0; i < SwitchPriorityCounters::kCount; ++i) {
          const std::string_view name = SwitchPriorityCounters::kDescriptions[i].name;
          CAPTURE(name);
          CHECK(whole.device.counters(port, priority).words()[i] == single.device.counters(port, priority).words()[i]);
        }
        marked += whole.device.counters(port, priority).wred_ecn_marked_packets;
      }
      passed += whole.device.counters(port).gso_passed;
      segmented += whole.device.counters(port).gso_segmented;
    }
    CHECK(whole.pauses == single.pauses);
    paused += whole.pauses.size();
    for (const Bytes& frame : whole.left[1]) {
      PacketMeta meta;
      REQUIRE(classify(frame.data(), static_cast<uint32_t>(frame.size()), meta) == Refusal::none);
      CHECK(icrc_ok(frame.data(), meta));
    }
  }
  // All of it has happened.
  CHECK(passed > 100);
  CHECK(segmented > 100);
  CHECK(marked > 100);
  CHECK(dropped > 100);
  CHECK(paused > 50);
}
