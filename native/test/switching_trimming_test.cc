// Frames of lossy classes that find no room go on without most of their payload.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "test/nic_harness.h"
#include "test/shard_harness.h"
#include "test/switch_harness.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint8_t kTrimmed = 5;  // as DSCP and as priority
constexpr Time kFrameTime = 9'000;

SwitchParameters parameters(size_t ports = 3) {
  SwitchParameters p = switch_parameters(ports);
  p.ecn_priorities = 0;
  p.buffer.total = 2'000'000;
  p.scheduler.strict = 1 << kTrimmed;
  p.trimming = {.priorities = 1 << 1, .size = 128, .dscp = kTrimmed, .queue = kTrimmed};
  for (SwitchParameters::Port& port : p.ports) port.queue_limits[1] = 20'000;
  return p;
}

// Sends a packet into any harness, with its headers.
template <class Harness>
void send(Harness& h, PacketPool& pool, SoftSwitch& device, Time now, uint16_t from, uint16_t to, uint8_t priority = 1) {
  const std::vector<uint8_t> bytes = roce(kOpcodeRcWriteOnly)
                                         .on(path_to(kHostMac + to, kHostMac + from))
                                         .dscp(priority)
                                         .psn(++h.received)
                                         .payload(1'000)
                                         .bytes();
  const auto length = static_cast<uint32_t>(bytes.size());
  const PacketId id = pool.allocate();
  REQUIRE(id != kNoPacket);
  pool[id].reset();
  REQUIRE(classify(bytes.data(), length, pool[id].meta) == Refusal::none);
  pool[id].length = length;
  std::memcpy(pool.data(id), bytes.data(), kHeaderStride);
  device.receive(now, from, id);
}

void send(SwitchHarness& h, Time now, uint16_t from, uint16_t to, uint8_t priority = 1) {
  h.wire.advance(now);
  send(h, h.pool, h.device, now, from, to, priority);
}

}  // namespace

TEST_CASE("trimming: what a full queue does not take overtakes it, and every frame is heard of") {
  SwitchHarness h(parameters());
  constexpr uint32_t kFrames = 200;
  for (uint32_t i = 0; i < kFrames; ++i) send(h, i * kFrameTime / 4, 1, 0);
  h.run(kSecond);
  SwitchPriorityCounters& queue = h.device.counters(0, 1);
  CHECK(queue.trim_packets > 100);
  CHECK(queue.dropped_trim_packets == 0);
  CHECK(h.dropped() == 0);
  CHECK(h.device.counters(0, kTrimmed).queue_packets == queue.trim_packets);
  CHECK(queue.queue_packets + queue.trim_packets == kFrames);
  std::vector<bool> heard(kFrames + 1);
  uint64_t trimmed = 0;
  for (const Departure& d : h.at_port(0)) {
    heard[d.psn] = true;
    if (d.length != 128) continue;
    ++trimmed;
    CHECK(d.kind == FrameKind::roce);
  }
  CHECK(trimmed == queue.trim_packets);
  CHECK(std::count(heard.begin(), heard.end(), true) == kFrames);
  // The first that was trimmed left before whole ones that were queued before it.
  const std::vector<Departure> out = h.at_port(0);
  uint32_t overtaken = 0;
  for (size_t i = 1; i < out.size(); ++i) overtaken += out[i].psn < out[i - 1].psn ? 1 : 0;
  CHECK(overtaken > 10);
  h.check_drained();
}

TEST_CASE("trimming: without room for what is left a frame is dropped, for the reason that it had, and counted") {
  SwitchParameters p = parameters();
  p.ports[0].queue_limits[kTrimmed] = 1'000;
  SwitchHarness h(p);
  h.receive_pause(0, 0, kMaxPauseQuanta);
  for (uint32_t i = 0; i < 100; ++i) send(h, 1 + i, 1, 0);
  SwitchPriorityCounters& queue = h.device.counters(0, 1);
  CHECK(queue.trim_packets == 82);  // 18 whole ones fit in
  CHECK(queue.dropped_trim_packets == 82 - 7);
  CHECK(h.device.counters(1).drop_queue_limit == 82 - 7);
  CHECK(h.dropped() == 82 - 7);
  CHECK(h.device.queue_bytes(0, kTrimmed) == 7 * 128);
  h.run(kSecond);
  h.check_drained();
}

TEST_CASE("trimming: the queue of what is left may be longer or shorter than others") {
  for (const int64_t buffer : {0, 60'000, 1'000}) {
    CAPTURE(buffer);
    SwitchParameters p = parameters();
    p.buffer.lossy_alpha = 0.02;  // of 5,461 packets, too: of two thirds of the pool
    p.trimming.buffer = buffer;
    SwitchHarness h(p);
    h.receive_pause(0, 0, kMaxPauseQuanta);
    for (uint32_t i = 0; i < 400; ++i) send(h, 1 + i, 1, 0);
    SwitchPriorityCounters& queue = h.device.counters(0, 1);
    CHECK(queue.trim_packets == 382);
    const uint64_t kept = queue.trim_packets - queue.dropped_trim_packets;
    CHECK(h.device.queue_bytes(0, kTrimmed) == static_cast<int64_t>(kept) * 128);
    CHECK(kept == (buffer == 0 ? 106 : buffer == 60'000 ? 382 : 7));
    h.run(kSecond);
    h.check_drained();
  }
}

TEST_CASE("trimming: by the shared buffer's threshold, too; not of other priorities, of the watchdog's, and without it") {
  SwitchParameters p = parameters();
  p.ports[0].queue_limits = {};
  p.buffer.total = 200'000;
  p.buffer.headroom = 0;
  p.buffer.lossy_alpha = 0.25;
  for (const uint8_t priority : {uint8_t{1}, uint8_t{2}}) {
    SwitchHarness h(p);
    h.receive_pause(0, 0, kMaxPauseQuanta);
    for (uint32_t i = 0; i < 100; ++i) send(h, 1 + i, 1, 0, priority);
    const bool trims = priority == 1;
    CHECK((h.device.counters(0, priority).trim_packets > 0) == trims);
    CHECK((h.device.counters(1).drop_lossy_threshold > 0) == !trims);
    h.run(kSecond);
    h.check_drained();
  }
}

TEST_CASE("trimming: queues of lossless priorities, and what is trimmed itself, are refused as its own") {
  SwitchParameters p = parameters();
  p.trimming.priorities = 1 << 3;
  CHECK_THROWS(check(p));
  p = parameters();
  p.trimming.queue = 1;
  CHECK_THROWS(check(p));
  p = parameters();
  p.trimming.queue = 3;
  CHECK_THROWS(check(p));
  p = parameters();
  p.trimming.size = 64;
  CHECK_THROWS(check(p));
  check(parameters());
}

TEST_CASE("trimming: a sharded switch does the same, and charges what is left where it came in") {
  for (const uint32_t shards : {2u, 3u}) {
    CAPTURE(shards);
    SwitchParameters p = parameters();
    p.ports[0].queue_limits[kTrimmed] = 1'000;
    ShardHarness h(p, shards);
    h.of(0).pauses().receive_pause(0, 0, kMaxPauseQuanta);
    for (uint32_t i = 0; i < 100; ++i) {
      const Time now = 1 + i * 1'000;
      h.wires[1 % shards]->advance(now);
      send(h, *h.pools[1 % shards], h.of(1), now, 1, 0);
      h.settle(now);
    }
    SwitchPriorityCounters& queue = h.of(0).counters(0, 1);
    CHECK(queue.trim_packets == 82);
    CHECK(queue.dropped_trim_packets == 82 - 7);
    CHECK(h.of(1).counters(1).drop_queue_limit == 82 - 7);
    CHECK(h.of(1).buffer().ingress_bytes(1, kTrimmed) == 7 * 128);
    h.run(kSecond);
    CHECK(h.at_port(0).size() == 18 + 7);
    h.check_drained();
  }
}
