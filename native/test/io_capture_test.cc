#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/native_error.h"
#include "engine/impairment_port.h"
#include "io/capture.h"
#include "test/memory_port.h"
#include "test/rig/port.h"
#include "test/wire_fixtures.h"
#include "wire/mac_control.h"

using namespace weir;
using namespace weir::test;

namespace {

struct Record {
  Time stamp;
  Bytes bytes;
  uint32_t original_length;
  bool operator==(const Record&) const = default;
};

Bytes numbered(uint32_t number, size_t length) {
  Bytes bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(number * 31 + i);
  return bytes;
}

size_t send(PacketPort& port, const Bytes& bytes) {
  const TxFrame frame{bytes.data(), static_cast<uint32_t>(bytes.size())};
  return port.transmit({&frame, 1}).sent;
}

// Frames that wait in a capture, by its reader, and the capture's records of them.
std::vector<std::pair<CapturedFrame, Record>> frames_of(Capture& capture, size_t room = 64 * 1024) {
  std::vector<std::pair<CapturedFrame, Record>> frames;
  Bytes chunk(std::max(room, capture.longest_record()));
  for (size_t bytes = 0; (bytes = capture.drain(chunk)) > 0;) {
    REQUIRE(bytes <= chunk.size());
    for (size_t at = 0; at < bytes;) {
      CapturedFrame frame;
      REQUIRE(bytes - at >= sizeof frame);
      std::memcpy(&frame, chunk.data() + at, sizeof frame);
      REQUIRE(bytes - at >= frame.length());
      const uint8_t* data = chunk.data() + at + sizeof frame;
      const uint8_t* end = data + frame.captured;
      at += frame.length();
      CHECK(std::all_of(end, static_cast<const uint8_t*>(chunk.data()) + at, [](uint8_t byte) { return byte == 0; }));
      frames.push_back({frame, {frame.stamp, Bytes(data, end), frame.original}});
    }
  }
  return frames;
}

std::vector<Record> drained(Capture& capture) {
  std::vector<Record> records;
  for (auto& [frame, record] : frames_of(capture)) records.push_back(std::move(record));
  return records;
}

// Returns a capture's record of a frame that comes in; nothing if it does not want it.
std::optional<CapturedFrame> seen(std::span<const uint8_t> bytes, CaptureOptions options = {}, const Offload& offload = {}) {
  PortClock clock;
  PortScript wire;
  wire.give(0, Bytes(bytes.begin(), bytes.end()), offload);
  options.snap_length = std::min(options.snap_length, uint32_t{2048});  // many are made
  options.ring_bytes = 8192;
  const auto capture = std::make_shared<Capture>(options, 1);
  CapturePort port(std::make_unique<ScriptedPort>(wire), capture, 0, clock);
  RxFrame frame;
  port.receive({&frame, 1});
  const auto frames = frames_of(*capture);
  return frames.empty() ? std::nullopt : std::optional(frames.at(0).first);
}

size_t receive_one(PacketPort& port) {
  RxFrame frame;
  const size_t got = port.receive({&frame, 1});
  port.release(got);
  return got;
}

}  // namespace

TEST_CASE("capture: the reader gets exactly what passed, both ways, over many turns of the ring") {
  PortClock clock{5000, -1'000'000'000'000};  // the worker's clock is behind wall-clock time
  auto [left, right] = make_memory_pair({8, 2048}, clock, clock);
  // A ring that is smaller than what passes, and a reader that takes a few frames at a time.
  const auto capture = std::make_shared<Capture>(CaptureOptions{.snap_length = 2048, .ring_bytes = 32 * 1024}, 1);
  CapturePort port(std::move(right), capture, 0, clock);
  std::vector<Record> expected, read;
  std::array<RxFrame, 8> frames;
  for (uint32_t i = 0; i < 400; ++i) {
    clock.now += 1000;
    const Bytes bytes = numbered(i, 60 + i * 3);
    const bool outgoing = i % 3 == 0;
    REQUIRE(send(outgoing ? static_cast<PacketPort&>(port) : *left, bytes) == 1);
    PacketPort& receiver = outgoing ? *left : static_cast<PacketPort&>(port);
    REQUIRE(receiver.receive(frames) == 1);
    CHECK(Bytes(frames[0].data, frames[0].data + frames[0].length) == bytes);
    receiver.release(1);
    expected.push_back({clock.now + 1'000'000'000'000, bytes, static_cast<uint32_t>(bytes.size())});
    if (i % 20 != 19) continue;
    for (auto& [frame, record] : frames_of(*capture, 2100)) {
      CHECK(frame.direction == (read.size() % 3 == 0 ? FrameDirection::outbound : FrameDirection::inbound));
      read.push_back(std::move(record));
    }
  }
  CHECK(read == expected);
  CHECK(capture->counts(0).dropped == 0);
}

TEST_CASE("capture: what the host did not take is not recorded, and a time before 1970 is that of its beginning") {
  PortClock clock{.now = 5, .realtime_offset = 1000};
  auto [left, right] = make_memory_pair({4, 2048}, clock, clock);
  const auto capture = std::make_shared<Capture>(CaptureOptions{}, 1);
  CapturePort port(std::move(right), capture, 0, clock);
  for (uint32_t i = 0; i < 4; ++i) CHECK(send(port, numbered(i, 100)) == 1);
  CHECK(send(port, numbered(4, 100)) == 0);
  const std::vector<Record> records = drained(*capture);
  CHECK(records.size() == 4);
  for (const Record& record : records) CHECK(record.stamp == 0);
}

TEST_CASE("capture: frames that the ring has no room for pass, and are counted") {
  PortClock clock;
  auto [left, right] = make_memory_pair({4, 2048}, clock, clock);
  const auto capture = std::make_shared<Capture>(CaptureOptions{.snap_length = 1500, .ring_bytes = 4096}, 1);
  CapturePort port(std::move(right), capture, 0, clock);
  constexpr uint32_t kFrames = 10;
  for (uint32_t i = 0; i < kFrames; ++i) {
    REQUIRE(send(*left, numbered(i, 1000)) == 1);
    REQUIRE(receive_one(port) == 1);
  }
  CHECK(capture->counts(0).seen == kFrames);
  CHECK(capture->counts(0).captured == 3);
  CHECK(capture->counts(0).dropped == kFrames - 3);
  const std::vector<Record> records = drained(*capture);
  REQUIRE(records.size() == 3);
  for (uint32_t i = 0; i < 3; ++i) CHECK(records[i].bytes == numbered(i, 1000));
}

TEST_CASE("capture: a stripped tag is put back, at every snap length") {
  const Bytes bytes = numbered(1, 60);
  Bytes whole(bytes.begin(), bytes.begin() + 12);
  for (const int byte : {0x88, 0xa8, 0x60, 0x64}) whole.push_back(static_cast<uint8_t>(byte));
  whole.insert(whole.end(), bytes.begin() + 12, bytes.end());
  for (uint32_t snap = 0; snap <= 70; ++snap) {
    CAPTURE(snap);
    PortClock clock;
    PortScript wire;
    wire.give_tagged(9, bytes, 0x6064);
    wire.arriving[0].frame.vlan_tpid = 0x88a8;
    wire.wait_descriptor = 17;
    wire.deadline = 18;
    wire.losses = {1, 2, 3};
    const auto capture = std::make_shared<Capture>(CaptureOptions{.snap_length = snap, .ring_bytes = 4096}, 1);
    CapturePort port(std::make_unique<ScriptedPort>(wire), capture, 0, clock);
    RxFrame frame;
    CHECK(port.receive({&frame, 1}) == 1);
    CHECK(frame.data == wire.arriving[0].bytes.data());  // lent on as it is
    CHECK(frame.vlan_stripped);
    CHECK(port.wait_descriptor() == 17);
    CHECK(port.next_deadline() == 18);
    CHECK(port.losses().transmit_errors == 3);
    const size_t kept = std::min<size_t>(snap, 64);
    CHECK(drained(*capture) ==
          std::vector<Record>{{9, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(kept)), 64}});
  }
}

TEST_CASE("capture: a ring that is too small is refused") {
  constexpr uint32_t kLeast = 2 * (1504 + sizeof(CapturedFrame));
  CHECK_NOTHROW(Capture({.snap_length = 1500, .ring_bytes = kLeast}, 1));
  CHECK_THROWS_AS(Capture({.snap_length = 1500, .ring_bytes = kLeast - 8}, 1), NativeError);
  CHECK_THROWS_AS(Capture({.snap_length = 1500, .ring_bytes = kLeast + 4}, 1), NativeError);
}

TEST_CASE("capture: a frame is told by all of its bytes, however few are kept") {
  for (const Bytes& frame : read_capture("ce_marked")) {
    const CapturedFrame whole = *seen(frame);
    CHECK(whole.original == frame.size());
    for (const uint32_t snap : {0u, 20u, 64u}) {
      const CapturedFrame cut = *seen(frame, {.snap_length = snap});
      CHECK(cut.captured == std::min<size_t>(snap, frame.size()));
      CHECK(cut.kind == whole.kind);
      CHECK(cut.ecn == whole.ecn);
      CHECK(cut.is_ip == whole.is_ip);
      CHECK(cut.destination_qp == whole.destination_qp);
    }
  }
  const auto kinds = read_capture("cnp_injected");
  CHECK(std::ranges::any_of(
      kinds, [](const Bytes& frame) { return seen(frame)->kind == FrameKind::cnp && seen(frame)->destination_qp != 0; }));
  Bytes bad(40);
  bad[12] = 0x08;
  CHECK(seen(bad)->refusal == Refusal::bad_ip_header);
  CHECK(seen(Bytes(5))->refusal == Refusal::runt);
}

TEST_CASE("capture: unfinished work of senders is told") {
  CHECK(seen(Bytes(60), {}, {.needs_checksum = true})->needs_checksum);
  CHECK(seen(Bytes(60), {}, {.needs_checksum = true})->segment_size == 0);
  CHECK(seen(Bytes(60), {}, {.segment_size = 1448, .gso = Gso::tcp4, .needs_checksum = true})->segment_size == 1448);
}

TEST_CASE("capture: chosen kinds") {
  Bytes pfc(60);
  build_pfc(pfc.data(), 1, {.enable = 1, .quanta = {1}});
  CHECK_FALSE(seen(pfc, {.kinds = kCaptureCnp | kCaptureCe}));
  CHECK(seen(pfc, {.kinds = kCapturePfc})->kind == FrameKind::pfc);
  size_t marked = 0;
  size_t plain = 0;
  for (const char* capture : {"ce_marked", "ops_rc"}) {
    for (const Bytes& frame : read_capture(capture)) {
      const CapturedFrame all = *seen(frame);
      const bool is_marked = all.is_ip && all.ecn == 3;
      (is_marked ? marked : plain) += 1;
      CHECK(seen(frame, {.kinds = kCaptureCe}).has_value() == is_marked);
    }
  }
  CHECK(marked > 0);
  CHECK(plain > 0);
}

TEST_CASE("capture: comes and goes around a port in use, next to the wire, others stay") {
  PortClock clock{7, 0};
  auto [left, right] = make_memory_pair({64, 2048}, clock, clock);
  // Half of what comes is lost behind the capture.
  std::unique_ptr<PacketPort> chain = std::make_unique<ImpairmentPort>(std::move(right), ImpairmentParameters{.loss = 1},
                                                                       ImpairmentOptions{.pool_frames = 8}, clock);
  PacketPort* const outermost = chain.get();
  const auto wrap = [&](uint32_t taps, uint32_t tap) {
    auto capture = std::make_shared<Capture>(CaptureOptions{}, taps);
    auto port = std::make_unique<CapturePort>(nullptr, capture, tap, clock);
    const CapturePort* const place = port.get();
    insert(chain, std::move(port));
    return std::pair(capture, place);
  };
  const auto pass = [&](uint32_t number) {
    REQUIRE(send(*left, numbered(number, 100)) == 1);
    CHECK(receive_one(*chain) == 0);  // lost
    REQUIRE(send(*chain, numbered(number + 1, 100)) == 1);
    CHECK(receive_one(*left) == 1);
  };
  const auto expected = [](uint32_t number) {
    return std::vector<Record>{{7, numbered(number, 100), 100}, {7, numbered(number + 1, 100), 100}};
  };
  pass(0);
  const auto [first, first_place] = wrap(1, 0);
  CHECK(chain.get() == outermost);
  pass(10);
  const auto [second, second_place] = wrap(2, 1);
  pass(20);
  CHECK(drained(*second) == expected(20));
  CHECK(second->counts(0).seen == 0);
  CHECK(second->counts(1).captured == 2);
  // The first, which is around the second, goes: that one stays.
  CHECK(remove(chain, first_place).get() == first_place);
  CHECK(remove(chain, first_place) == nullptr);
  pass(30);
  CHECK(drained(*second) == expected(30));
  std::vector<Record> both = expected(10);
  for (const Record& record : expected(20)) both.push_back(record);
  CHECK(drained(*first) == both);
  CHECK(remove(chain, second_place) != nullptr);
  pass(40);
  CHECK(drained(*second).empty());
  CHECK(second->counts(1).seen == 4);
}

TEST_CASE("capture: frames that are lent stay so when a capture goes") {
  PortClock clock;
  auto [left, right] = make_memory_pair({2, 2048}, clock, clock);
  std::unique_ptr<PacketPort> port = std::move(right);
  const auto capture = std::make_shared<Capture>(CaptureOptions{}, 1);
  auto wrapper = std::make_unique<CapturePort>(nullptr, capture, 0, clock);
  const CapturePort* const place = wrapper.get();
  insert(port, std::move(wrapper));
  REQUIRE(send(*left, numbered(1, 100)) == 1);
  RxFrame frame;
  REQUIRE(port->receive({&frame, 1}) == 1);
  remove(port, place).reset();
  CHECK(Bytes(frame.data, frame.data + frame.length) == numbered(1, 100));
  port->release(1);
  for (uint32_t i = 0; i < 2; ++i) CHECK(send(*left, numbered(2 + i, 100)) == 1);  // both slots are free again
}

TEST_CASE("capture: another thread reads while frames pass, and misses none that was not counted") {
  PortClock clock;
  auto [left, right] = make_memory_pair({64, 2048}, clock, clock);
  const auto capture = std::make_shared<Capture>(CaptureOptions{.snap_length = 2048, .ring_bytes = 16 * 1024}, 1);
  CapturePort port(std::move(right), capture, 0, clock);
  constexpr uint32_t kFrames = 20'000;
  std::atomic<bool> over{false};
  std::vector<Record> read;
  std::thread reader([&] {
    for (bool last = false; !last;) {
      last = over.load(std::memory_order_acquire);
      for (Record& record : drained(*capture)) read.push_back(std::move(record));
    }
  });
  for (uint32_t i = 0; i < kFrames; ++i) {
    clock.now = i;
    REQUIRE(send(port, numbered(i, 60 + i % 1000)) == 1);
    REQUIRE(receive_one(*left) == 1);
  }
  over.store(true, std::memory_order_release);
  reader.join();
  const Capture::Counts counts = capture->counts(0);
  CHECK(counts.seen == kFrames);
  CHECK(counts.captured == read.size());
  CHECK(counts.captured + counts.dropped == kFrames);
  bool whole = true;
  for (const Record& record : read) {
    whole = whole && record.bytes == numbered(static_cast<uint32_t>(record.stamp), 60 + static_cast<size_t>(record.stamp) % 1000);
  }
  CHECK(whole);
}
