// Super-frames on their way in: a NIC takes their packets one by one, as impairments and captures do.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "engine/impairment_port.h"
#include "engine/nic_device.h"
#include "io/capture.h"
#include "test/nic_harness.h"
#include "test/rig/port.h"
#include "test/super_frames.h"
#include "wire/classify.h"
#include "wire/icrc.h"
#include "wire/super_frame.h"

using namespace weir;
using namespace weir::test;

namespace {

struct NicRig {
  NicRig() {
    config.parameters = nic_parameters(1'000'000'000);
    device = std::make_unique<NicDevice>(config, uint16_t{0}, WirePort(std::make_unique<ScriptedPort>(wire), 0, 0, 64), pool,
                                         punted, records, 0);
  }
  void turn() { device->turn(kMillisecond, kMillisecond); }
  NicCounters& counters() { return device->soft_nic().counters(); }

  PacketPool pool{64, 2'048};
  FrameRing punted{16};
  SpscRing<Record> records{16};
  NicDeviceConfig config;
  PortScript wire;
  std::unique_ptr<NicDevice> device;
};

}  // namespace

TEST_CASE("nic super-frames: each packet is received, checked and counted by itself") {
  NicRig rig;
  SuperFrame super = join_all(roce_packets(path_to(kNicMac, kPeerMac), 10, 1'000, 500));
  SuperFrame damaged = super;
  damaged.bytes[super.offload.header_length + 3 * super.offload.segment_size + 100] ^= 1;
  rig.wire.give(1'000, super.bytes, super.offload);
  rig.wire.give(2'000, damaged.bytes, damaged.offload);
  rig.turn();
  CHECK(rig.counters().rx_packets == 20);
  CHECK(rig.counters().rx_bytes == 2 * (9 * 1'058 + 558));
  CHECK(rig.counters().rx_icrc_encapsulated == 1);
  CHECK(rig.counters().drop_unknown_qp == 19);
  CHECK(rig.counters().drop_malformed == 0);
  CHECK(rig.wire.released == 2);
}

TEST_CASE("nic super-frames: a receiving kernel may have joined packets that have all one identification") {
  std::vector<Bytes> packets;
  for (uint32_t i = 0; i < 10; ++i) packets.push_back(roce_packets(path_to(kNicMac, kPeerMac), 1, 0, 1'000)[0]);
  SuperFrame super = join_all(roce_packets(path_to(kNicMac, kPeerMac), 10, 1'000, 1'000));
  super.bytes.resize(super.offload.header_length);
  for (const Bytes& one : packets) super.bytes.insert(super.bytes.end(), one.begin() + super.offload.header_length, one.end());
  NicRig rig;
  rig.wire.give(1'000, super.bytes, super.offload);
  rig.turn();
  CHECK(rig.counters().rx_packets == 10);
  CHECK(rig.counters().rx_icrc_encapsulated == 0);
  CHECK(rig.counters().drop_unknown_qp == 10);
}

TEST_CASE("nic super-frames: what does not fit its frame, or is of another kind, is refused and counted") {
  const SuperFrame good = join_all(roce_packets(path_to(kNicMac, kPeerMac), 10, 1'000, 500));
  const auto refused = [&](auto spoil) {
    NicRig rig;
    SuperFrame super = good;
    spoil(super);
    rig.wire.give(1'000, super.bytes, super.offload);
    rig.turn();
    CHECK(rig.counters().rx_packets == 1);
    return rig.counters().drop_malformed == 1;
  };
  CHECK(refused([](SuperFrame& s) { s.offload.segment_size = 0; }));
  CHECK(refused([](SuperFrame& s) { s.offload.segment_size = kLeastRoceSegment - 1; }));
  CHECK(refused([](SuperFrame& s) { s.offload.gso = Gso::tcp4; }));
  CHECK(refused([](SuperFrame& s) { s.offload.gso = Gso::unsupported; }));
  CHECK(refused([](SuperFrame& s) { s.offload.needs_checksum = false; }));
  CHECK(refused([](SuperFrame& s) { s.offload.checksum_start = 0xffff; }));
  CHECK(refused([](SuperFrame& s) { s.offload.checksum_offset = 16; }));
  CHECK(refused([](SuperFrame& s) { s.bytes.pop_back(); }));
  CHECK(refused([](SuperFrame& s) { s.bytes.resize(40); }));
  CHECK(refused([](SuperFrame& s) { store_be16(&s.bytes[14 + 20 + 2], 4'790); }));
}

TEST_CASE("impairment: a super-frame is impaired packet by packet") {
  const std::vector<Bytes> packets = roce_packets(path_to(kNicMac, kPeerMac), 40, 1'000, 500);
  PortClock clock;
  PortScript wire;
  ImpairmentPort port(std::make_unique<ScriptedPort>(wire), {.loss = 0.3}, {.seed = 1}, clock);
  const SuperFrame super = join_all(packets);
  for (int i = 0; i < 50; ++i) wire.give(0, super.bytes, super.offload);
  std::array<RxFrame, 64> frames;
  uint64_t got = 0;
  for (size_t count = port.receive(frames); count > 0; count = port.receive(frames)) {
    for (size_t i = 0; i < count; ++i) {
      CHECK(frames[i].offload.gso == Gso::none);
      const Bytes one(frames[i].data, frames[i].data + frames[i].length);
      CHECK(std::find(packets.begin(), packets.end(), one) != packets.end());
    }
    got += count;
    port.release(count);
  }
  CHECK(got + port.counters().lost == 2'000);
  CHECK(port.counters().lost > 450);
  CHECK(port.counters().lost < 750);
  CHECK(port.counters().overflow == 0);
  CHECK(wire.released == 50);
}

TEST_CASE("capture: a RoCEv2 super-frame is recorded as its packets, both ways") {
  const std::vector<Bytes> packets = roce_packets(path_to(kNicMac, kPeerMac), 5, 1'000, 500);
  SuperFrame super = join_all(packets);
  PortClock clock;
  PortScript wire;
  wire.give(0, super.bytes, super.offload);
  const auto capture = std::make_shared<Capture>(CaptureOptions{}, 1);
  CapturePort port(std::make_unique<ScriptedPort>(wire), capture, 0, clock);
  std::array<RxFrame, 4> frames;
  REQUIRE(port.receive(frames) == 1);
  CHECK(frames[0].offload.gso == Gso::udp);
  const TxFrame out{super.bytes.data(), static_cast<uint32_t>(super.bytes.size()), super.offload};
  REQUIRE(port.transmit({&out, 1}).sent == 1);
  CHECK(capture->counts(0).captured == 10);
  Bytes chunk(64 * 1024);
  const size_t bytes = capture->drain(chunk);
  size_t number = 0;
  for (size_t at = 0; at < bytes; ++number) {
    CapturedFrame frame;
    std::memcpy(&frame, chunk.data() + at, sizeof frame);
    const uint8_t* const data = chunk.data() + at + sizeof frame;
    CHECK(Bytes(data, data + frame.captured) == packets[number % 5]);
    CHECK(frame.segment_size == 0);
    at += frame.length();
  }
  CHECK(number == 10);
}

TEST_CASE("nic super-frames: packets of a queue pair leave in a row where the port joins them, and in order") {
  for (const bool joins : {false, true}) {
    CAPTURE(joins);
    PacketPool pool(1'024, 2'048);
    FrameRing punted(16);
    SpscRing<Record> records(16);
    NicDeviceConfig config;
    config.parameters = nic_parameters();
    config.arrears = kMillisecond;
    constexpr uint32_t kQueuePairs = 5;
    for (uint32_t i = 0; i < kQueuePairs; ++i) {
      config.queue_pairs.push_back(sender());
      config.queue_pairs.back().remote_qpn = 100 + i;
      config.queue_pair_settings.push_back({"a"});
    }
    PortScript wire;
    wire.capabilities.joins = joins;
    NicDevice nic(config, 0, WirePort(std::make_unique<ScriptedPort>(wire), 0, 0, 64), pool, punted, records, 0);
    for (Time now = 0; now < 400 * kMicrosecond; now += 50 * kMicrosecond) nic.turn(now, now);
    REQUIRE(wire.sent.size() > 100);
    uint32_t changes = 0;
    std::array<uint32_t, kQueuePairs> next{};
    uint32_t before = 100;
    for (const auto& [bytes, offload] : wire.sent) {
      PacketMeta meta;
      classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta);
      if (meta.destination_qp != std::exchange(before, meta.destination_qp)) ++changes;
      CHECK(meta.psn == next[meta.destination_qp - 100]++);
    }
    // They take turns packet by packet; of those of one turn of the loop each queue pair's are together.
    if (joins) {
      CHECK(changes < 8 * kQueuePairs);
    } else {
      CHECK(changes > wire.sent.size() / 2);
    }
  }
}

TEST_CASE(
    "nic super-frames: what a late NIC makes up for leaves in pieces, at the times and in the order of one that is not late") {
  const auto run = [](uint32_t queue_pairs, std::initializer_list<Time> turns) {
    PacketPool pool(1'024, 2'048);
    FrameRing punted(16);
    SpscRing<Record> records(16);
    NicDeviceConfig config;
    config.parameters = nic_parameters(100'000'000'000);
    config.arrears = kMillisecond;
    config.queue_pairs.assign(queue_pairs, sender());
    config.queue_pair_settings.assign(queue_pairs, {"a"});
    PortScript wire;
    wire.capabilities.joins = true;
    NicDevice nic(config, 0, WirePort(std::make_unique<ScriptedPort>(wire), 0, 0, 64), pool, punted, records, 0);
    for (const Time at : turns) nic.turn(at, at);
    std::vector<uint32_t> psns;
    std::vector<uint64_t> calls;  // bytes on the wire
    for (auto frame = wire.sent.begin(); const size_t frames : wire.calls) {
      calls.push_back(0);
      for (const auto end = frame + static_cast<std::ptrdiff_t>(frames); frame != end; ++frame) {
        const auto length = static_cast<uint32_t>(frame->bytes.size());
        PacketMeta meta;
        classify(frame->bytes.data(), length, meta);
        psns.push_back(meta.psn);
        calls.back() += wire_bytes(length);
      }
    }
    return std::pair(psns, calls);
  };
  // 48 us at 100 Gb/s are 600,000 bytes; a piece is of 131,072.
  const auto [late_psns, late] = run(1, {0, 48 * kMicrosecond});
  const auto [psns, calls] = run(1, {0, 8'000, 16'000, 24'000, 32'000, 40'000, 48'000});
  CHECK(late_psns == psns);
  CHECK(calls.size() == 6);
  REQUIRE(late.size() == 5);
  uint64_t all = 0;
  for (const uint64_t bytes : late) {
    CHECK(bytes <= 131'072 + 2 * 1'106);
    all += bytes;
  }
  CHECK(all > 600'000 - 2 * 1'106);
  CHECK(all <= 600'000);
  // If several share them, pieces are longer, so that each queue pair has its two super-frames: known from the first on.
  CHECK(run(3, {0, 48 * kMicrosecond}).second.size() == 3);
}

TEST_CASE("nic super-frames: small messages of an application's queue pair leave in order, full super-frames of them") {
  PacketPool pool(1'024, 2'048);
  FrameRing punted(16);
  SpscRing<Record> records(16);
  NicDeviceConfig config;
  config.parameters = nic_parameters(100'000'000'000);
  config.parameters.verbs_queue_pairs = 2;
  config.parameters.memory_regions = 1;
  config.arrears = kMillisecond;
  PortScript wire;
  wire.capabilities.joins = true;
  NicDevice nic(config, 0, WirePort(std::make_unique<ScriptedPort>(wire), 0, 0, 64), pool, punted, records, 0);

  Bytes memory(4'096);
  MemoryRegion region;
  region.data = memory.data();
  region.address = reinterpret_cast<uintptr_t>(memory.data());
  region.length = memory.size();
  region.access = kLocalWrite;
  const uint32_t key = nic.soft_nic().memory().add(region);
  constexpr uint32_t kMessages = 200;
  const uint32_t qpn = nic.applications()->create_queue_pair({.send_depth = kMessages});
  for (const QueuePairState state : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
    QueueAttributes a;
    a.remote_qpn = 0x77;
    a.path_mtu = 1'024;
    nic.soft_nic().applications().modify(qpn, state, a, path_to(kPeerMac, kNicMac), 3, 0);
  }
  SendWork work{.opcode = WorkOpcode::write, .length = 64, .local_address = region.address, .local_key = key};
  constexpr uint32_t kFirst = 8;
  REQUIRE(nic.verbs()->commands.push({.qpn = qpn, .times = kFirst, .work = work}));
  for (Time now = 0; now < 10 * kMicrosecond; now += 2 * kMicrosecond) nic.turn(now, now);
  REQUIRE(wire.calls == std::vector<size_t>{kFirst});
  REQUIRE(nic.verbs()->commands.push({.qpn = qpn, .times = kMessages - kFirst - 1, .work = work}));
  work.flags = kSignaled;
  REQUIRE(nic.verbs()->commands.push({.qpn = qpn, .work = work}));
  for (Time now = 20 * kMicrosecond; now < 100 * kMicrosecond; now += 10 * kMicrosecond) nic.turn(now, now);

  REQUIRE(wire.sent.size() == kMessages);
  CHECK(nic.soft_nic().counters().tx_packets == kMessages);
  constexpr uint32_t kJoined = 64;
  uint32_t super_frames = 0;
  uint32_t psn = 0;
  for (size_t i = 0; i < wire.sent.size(); ++super_frames) {
    SuperFrameJoin join;
    REQUIRE(join.begin(wire.sent[i].bytes.data(), static_cast<uint32_t>(wire.sent[i].bytes.size())));
    size_t end = i + 1;
    for (; end < wire.sent.size() && join.packets() < kJoined; ++end) {
      if (!join.add(wire.sent[end].bytes.data(), static_cast<uint32_t>(wire.sent[end].bytes.size()))) break;
    }
    for (; i < end; ++i) {
      PacketMeta meta;
      REQUIRE(classify(wire.sent[i].bytes.data(), static_cast<uint32_t>(wire.sent[i].bytes.size()), meta) == Refusal::none);
      CHECK(meta.psn == psn++);
      CHECK(icrc_ok(wire.sent[i].bytes.data(), meta));
    }
  }
  CHECK(super_frames == (kMessages + kJoined - 1) / kJoined);
  // The link takes far more by the next turn; but a super-frame of short packets is sent as soon as it is full.
  CHECK(wire.calls.size() == 4);
  for (size_t i = 1; i < wire.calls.size(); ++i) CHECK(wire.calls[i] == kJoined);
}
