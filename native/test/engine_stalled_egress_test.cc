// A switch of which one egress interface does not take frames: what waits for it is in the shared buffer, and the others go on.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/nic_device.h"
#include "engine/switch_device.h"
#include "test/nic_harness.h"
#include "test/rig/port.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint64_t kHost = 0x025745000000;

// What an interface has taken; all but `pfc` are of other frames.
struct Taken {
  explicit Taken(const PortScript& port) {
    for (const auto& [frame, offload] : port.sent) {
      PacketMeta meta;
      classify(frame.data(), static_cast<uint32_t>(frame.size()), meta);
      if (meta.kind == FrameKind::pfc) {
        ++pfc;
        continue;
      }
      ++frames;
      bytes += frame.size();
      marked += meta.ecn == 3;
    }
  }
  uint64_t frames = 0, bytes = 0, pfc = 0, marked = 0;
};

std::vector<uint8_t> frame_to(uint16_t port, uint8_t dscp, uint32_t payload) {
  return roce(kOpcodeRcSendOnly).on(path_to(kHost + port, kHost + 99)).dscp(dscp).payload(payload).bytes();
}

// Three ports; DSCP 24 is priority 3, which PFC keeps without loss, all else priority 0.
struct Rig {
  explicit Rig(Rate rate, uint32_t packets = 8'192, size_t batch = 1) : pool(packets, 2'048), punted(16) {
    for (auto& port : ports) port.capabilities.batch = batch;
    SwitchParameters p;
    for (uint64_t i = 0; i < 3; ++i) p.ports.push_back({rate, 1'500, 0x025753000000 + i});
    p.priority_map.dscp[24] = 3;
    p.buffer = {.total = 4'000'000, .headroom = 20'000};
    p.ecn_priorities = 1 << 3;
    p.red = {.kmin = 5'000, .kmax = 200'000, .pmax = 0.01};
    config.name = "sw";
    config.ports.resize(3);
    config.parameters = p;
    for (uint16_t i = 0; i < 3; ++i) config.routes.push_back({kHost + i, {i}});
    std::vector<WirePort> wires;
    for (auto& port : ports) wires.emplace_back(std::make_unique<ScriptedPort>(port), rate, 0, 512);
    device = std::make_unique<SwitchDevice>(config, uint16_t{0}, std::move(wires), pool, punted);
  }
  // `count` frames, one every 10 us, come in by port 0 from `now` on.
  void arrive(uint16_t to, uint8_t dscp, size_t count, uint32_t payload = 1'000) {
    for (size_t i = 0; i < count; ++i) {
      ports[0].give(now + static_cast<Time>(i + 1) * 10 * kMicrosecond, frame_to(to, dscp, payload));
    }
  }
  void run(Time until) {
    for (; now < until; now += 100 * kMicrosecond) {
      device->turn(now, now);
      if (now % WirePort::kStall == 0) {
        for (WirePort& port : device->ports()) port.check(now);
      }
    }
    device->turn(now, now);
  }
  Taken taken(uint16_t port) const { return Taken(ports[port]); }
  SoftSwitch& soft() { return device->soft_switch(); }
  int64_t occupied() { return soft().buffer().occupied(); }
  uint64_t in_queues(uint16_t port) {
    uint64_t bytes = 0;
    for (int p = 0; p < kPriorities; ++p) bytes += static_cast<uint64_t>(soft().queue_bytes(port, p));
    return bytes;
  }
  uint64_t gave_up(uint16_t port) {
    device->ports()[port].settle();
    return device->ports()[port].counters().host_tx_errors;
  }

  PacketPool pool;
  FrameRing punted;
  SwitchDeviceConfig config;
  PortScript ports[3];
  std::unique_ptr<SwitchDevice> device;
  Time now = kMillisecond;
};

}  // namespace

TEST_CASE(
    "stalled egress: its frames wait in the shared buffer, lossy ones up to their threshold, and other ports are unaffected") {
  for (const Rate rate : {Rate{0}, Rate{1'000'000'000}}) {
    CAPTURE(rate);
    Rig rig(rate);
    rig.ports[1].room = 0;
    rig.arrive(1, 0, 6'000);
    rig.run(rig.now + 80 * kMillisecond);
    SwitchPortCounters& in = rig.soft().counters(0);
    // 6.3 MB came; half of the free buffer is what a lossy queue may have.
    CHECK(rig.soft().queue_bytes(1, 0) > 1'600'000);
    CHECK(rig.occupied() == rig.soft().queue_bytes(1, 0));
    CHECK(in.drop_lossy_threshold > 3'000);
    CHECK(in.drop_no_descriptor == 0);
    CHECK(rig.soft().counters(1).tx_packets == 0);
    CHECK(rig.soft().counters(1, 0).queue_packets == 0);
    // Little is outside of the buffer.
    const uint32_t outside = rig.device->ports()[1].unsent_bytes();
    CHECK(outside > 0);
    CHECK(outside <= kMostUnsent + 65 * 1'062);
    CHECK(in.rx_packets == in.drop_lossy_threshold + rig.soft().held());

    // Others are served as ever, meanwhile.
    rig.arrive(2, 0, 2'000);
    rig.run(rig.now + 40 * kMillisecond);
    CHECK(rig.taken(2).frames == 2'000);
    CHECK(rig.soft().counters(2).tx_packets == 2'000);
    CHECK(rig.soft().counters(2).tx_bytes == rig.taken(2).bytes);
    CHECK(in.drop_lossy_threshold + in.drop_no_descriptor + rig.soft().held() == 6'000);

    // It works again: everything that was kept leaves, and only that has been counted.
    rig.ports[1].room = kAnyNumber;
    rig.run(rig.now + 60 * kMillisecond);
    CHECK(rig.soft().held() == 0);
    CHECK(rig.occupied() == 0);
    CHECK(rig.taken(1).frames == 6'000 - in.drop_lossy_threshold);
    CHECK(rig.soft().counters(1).tx_packets == rig.taken(1).frames);
    CHECK(rig.soft().counters(1).tx_bytes == rig.taken(1).bytes);
    CHECK(rig.soft().counters(1, 0).queue_bytes == rig.taken(1).bytes);
    CHECK(rig.gave_up(1) == 0);
    CHECK(rig.pool.available() == rig.pool.size());
  }
}

TEST_CASE("stalled egress: a lossless priority is marked and paused, and loses nothing to a stall of half a second") {
  for (const Rate rate : {Rate{0}, Rate{1'000'000'000}}) {
    CAPTURE(rate);
    Rig rig(rate);
    rig.ports[1].room = 0;
    rig.arrive(1, 24, 600);
    rig.run(rig.now + 7 * kMillisecond);
    CHECK_FALSE(rig.soft().pauses().stopped(0, 3));
    CHECK(rig.soft().counters(1, 3).wred_ecn_marked_packets > 0);
    rig.arrive(1, 24, 2'000);
    rig.run(rig.now + 30 * kMillisecond);
    CHECK(rig.soft().pauses().stopped(0, 3));
    CHECK(rig.taken(0).pfc > 0);
    rig.run(rig.now + 450 * kMillisecond);
    CHECK(rig.soft().pauses().stopped(0, 3));
    rig.ports[1].room = kAnyNumber;
    rig.run(rig.now + 60 * kMillisecond);
    CHECK_FALSE(rig.soft().pauses().stopped(0, 3));
    CHECK(rig.taken(1).marked > 100);
    CHECK(rig.taken(1).frames + rig.soft().counters(0).drop_headroom_full == 2'600);  // a sender that does not obey
    CHECK(rig.gave_up(1) == 0);
    CHECK(rig.pool.available() == rig.pool.size());
  }
}

TEST_CASE("stalled egress: pauses of its own are not piled up, and tell how things are when they leave") {
  Rig rig(0);
  rig.ports[0].room = 0;  // towards which there is a stop to be said
  rig.ports[1].room = 0;
  rig.arrive(1, 24, 2'600);
  rig.run(rig.now + 30 * kMillisecond);
  CHECK(rig.soft().pauses().stopped(0, 3));
  CHECK(rig.soft().counters(0).tx_pfc_frames == 0);  // none has left
  rig.ports[0].room = kAnyNumber;
  rig.run(rig.now + 10 * kMillisecond);
  CHECK(rig.taken(0).pfc == rig.soft().counters(0).tx_pfc_frames);
  CHECK(rig.taken(0).pfc == rig.soft().counters(0, 3).pfc_tx_packets);
  CHECK(rig.taken(0).pfc > 0);
}

TEST_CASE("stalled egress: one that never works again bleeds what waits before it, and the rest stays in the buffer") {
  Rig rig(0);
  rig.ports[1].room = 0;
  rig.arrive(1, 0, 6'000);
  rig.run(rig.now + 3'500 * kMillisecond);
  const uint64_t given_up = rig.gave_up(1);
  CHECK(given_up > 3 * kMostUnsent / 1'100);
  CHECK(given_up < 3 * (kMostUnsent + 65 * 1'062) / 1'000);
  CHECK(rig.soft().counters(1).tx_packets == 0);
  CHECK(rig.device->ports()[1].transmit_stalled());
  CHECK(rig.soft().counters(0).drop_lossy_threshold + given_up + rig.soft().held() == 6'000);
  CHECK(rig.soft().queue_bytes(1, 0) > 1'000'000);
}

TEST_CASE("stalled egress: when its interface is deleted, nothing leaks, and one in its place is served") {
  for (const Rate rate : {Rate{0}, Rate{1'000'000'000}}) {
    CAPTURE(rate);
    Rig rig(rate);
    rig.ports[1].room = 0;
    rig.arrive(1, 0, 3'000);
    rig.arrive(1, 24, 1'000);
    rig.run(rig.now + 45 * kMillisecond);
    CHECK(rig.occupied() > 0);
    const uint64_t kept = rig.soft().held();
    rig.ports[1].state = PortState::gone;
    rig.run(rig.now + 400 * kMillisecond);
    CHECK(rig.soft().held() == 0);
    CHECK(rig.occupied() == 0);
    CHECK(rig.soft().counters(1).tx_port_down == kept);
    CHECK(rig.soft().counters(1).tx_packets == 0);
    CHECK(rig.pool.available() == rig.pool.size());
    rig.ports[1].state = PortState::up;
    rig.ports[1].room = kAnyNumber;
    rig.run(rig.now + 300 * kMillisecond);
    rig.arrive(1, 0, 10);
    rig.run(rig.now + kMillisecond);
    CHECK(rig.taken(1).frames == 10);
    CHECK(rig.soft().counters(1).tx_packets == 10);
  }
}

TEST_CASE("stalled egress: small frames fill the packets before the buffer, and others still have some") {
  for (const uint8_t dscp : {uint8_t{0}, uint8_t{24}}) {
    CAPTURE(int{dscp});
    Rig rig(0, 4'096);
    rig.ports[1].room = 0;
    rig.arrive(1, dscp, 20'000, 16);
    rig.run(rig.now + 220 * kMillisecond);
    SwitchPortCounters& in = rig.soft().counters(0);
    CHECK(in.drop_no_descriptor == 0);
    CHECK(rig.pool.available() > 500);
    CHECK(in.drop_lossy_threshold + in.drop_headroom_full > 10'000);
    CHECK(rig.soft().pauses().stopped(0, 3) == (dscp == 24));
    rig.arrive(2, 0, 2'000);
    rig.run(rig.now + 40 * kMillisecond);
    CHECK(rig.taken(2).frames == 2'000);
    rig.ports[1].room = kAnyNumber;
    rig.run(rig.now + 10 * kMillisecond);
    CHECK_FALSE(rig.soft().pauses().stopped(0, 3));
    CHECK(rig.pool.available() == rig.pool.size());
  }
}

TEST_CASE("stalled egress: a NIC holds its queue pairs back, and goes on from there") {
  PacketPool pool(512, 4'096);
  FrameRing punted(16);
  SpscRing<Record> records(16);
  NicDeviceConfig config;
  config.name = "nic";
  config.parameters = nic_parameters();
  config.arrears = kMillisecond;
  config.queue_pairs = {sender()};
  config.queue_pair_settings = {{"a"}};
  PortScript wire;
  const Rate rate = config.parameters.rate;
  NicDevice nic(config, 0, WirePort(std::make_unique<ScriptedPort>(wire), rate, 0, 64), pool, punted, records, 0);
  Time now = 0;
  const auto run = [&](Time until) {
    for (; now < until; now += 20 * kMicrosecond) nic.turn(now, now);
  };
  run(2 * kMillisecond);
  const uint64_t before = Taken(wire).frames;
  CHECK(before > 100);
  wire.room = 0;
  run(500 * kMillisecond);
  const NicCounters& counters = nic.soft_nic().counters();
  CHECK(nic.ports()[0].unsent_bytes() <= kMostUnsent + 30'000);  // and the frames sent in one turn
  CHECK(counters.tx_packets == before);
  CHECK(counters.tx_no_descriptor == 0);
  CHECK(pool.available() > 300);
  wire.room = kAnyNumber;
  run(510 * kMillisecond);
  CHECK(Taken(wire).frames > before + 200);
  CHECK(counters.tx_packets == Taken(wire).frames);
  CHECK(counters.tx_bytes == Taken(wire).bytes);
}

TEST_CASE("stalled egress: a port that wants many frames at a time is handed them so, and few more when it takes none") {
  constexpr size_t kBatch = 512, kFrames = 1'000;
  for (const size_t batch : {size_t{1}, kBatch}) {
    CAPTURE(batch);
    Rig rig(0, 8'192, batch);
    for (size_t i = 0; i < kFrames; ++i) rig.ports[0].give(rig.now, frame_to(1, 0, 1'000));
    rig.run(rig.now + 100 * kMicrosecond);
    CHECK(rig.taken(1).frames == kFrames);
    const size_t largest = *std::ranges::max_element(rig.ports[1].calls);
    CHECK(largest == (batch == 1 ? 64 : kBatch));
    CHECK(rig.ports[1].calls.size() <= (batch == 1 ? 16u : 2u));

    rig.ports[1].room = 100;
    for (size_t i = 0; i < kFrames; ++i) rig.ports[0].give(rig.now, frame_to(1, 0, 1'000));
    rig.run(rig.now + 10 * kMillisecond);
    CHECK(rig.taken(1).frames == kFrames + 100);
    const uint32_t outside = rig.device->ports()[1].unsent_bytes();
    CHECK(outside <= std::max<size_t>(kMostUnsent, batch * 1'062) + 65 * 1'062);
    CHECK(rig.occupied() > 0);
    CHECK(rig.occupied() + outside >= 900 * 1'050);
    rig.ports[1].room = kAnyNumber;
    rig.run(rig.now + 10 * kMillisecond);
    CHECK(rig.taken(1).frames == 2 * kFrames);
    CHECK(rig.occupied() == 0);
  }
}
