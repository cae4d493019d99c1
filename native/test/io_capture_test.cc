#include <doctest/doctest.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/native_error.h"
#include "engine/impairment_port.h"
#include "io/capture.h"
#include "io/capture_file.h"
#include "io/memory_port.h"
#include "io/packet_blocks.h"

using namespace weir;

namespace {

using Bytes = std::vector<uint8_t>;

struct TemporaryFile {
  std::string path = (std::filesystem::temp_directory_path() / ("weir-capture-" + std::to_string(::getpid()))).string();
  ~TemporaryFile() { std::filesystem::remove(path); }
};

struct Record {
  Time stamp;
  Bytes bytes;
  uint32_t original_length;
  bool operator==(const Record&) const = default;
};

std::vector<Record> read_back(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  REQUIRE(file != nullptr);
  Bytes bytes(std::filesystem::file_size(path));
  REQUIRE(std::fread(bytes.data(), 1, bytes.size(), file) == bytes.size());
  std::fclose(file);
  PcapReader reader(bytes);
  std::vector<Record> records;
  for (PcapRecord r; reader.next(r);) records.push_back({r.stamp, Bytes(r.bytes.begin(), r.bytes.end()), r.original_length});
  CHECK(reader.malformed() == 0);
  return records;
}

Bytes numbered(uint32_t number, size_t length) {
  Bytes bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(number * 31 + i);
  return bytes;
}

size_t send(PacketPort& port, const Bytes& bytes) {
  const TxFrame frame{bytes.data(), static_cast<uint32_t>(bytes.size())};
  return port.transmit({&frame, 1}).sent;
}

// Receives one frame whose tag was stripped.
struct TaggedPort final : PacketPort {
  RxFrame frame;
  size_t receive(std::span<RxFrame> frames) override {
    frames[0] = frame;
    return 1;
  }
  void release(size_t) override {}
  Transmitted transmit(std::span<const TxFrame>) override { return {}; }
  int wait_descriptor() const override { return 17; }
  Time next_deadline() const override { return 18; }
  PortLosses losses() override { return {1, 2, 3}; }
};

// A port whose frames go to a pcap file, as those of a lab do.
struct FilePort {
  std::shared_ptr<Capture> capture;
  CaptureFile file;
  CapturePort port;
  FilePort(std::unique_ptr<PacketPort> inner, const std::string& path, const CaptureOptions& options, const PortClock& clock)
      : capture(std::make_shared<Capture>(options, 1)), file(path, capture), port(std::move(inner), capture, 0, clock) {}
  uint64_t dropped() const { return capture->counts(0).dropped; }
};

// What waits in a capture, by its reader.
std::vector<Record> drained(Capture& capture) {
  std::vector<Record> records;
  for (Capture::Waiting waiting; capture.peek(waiting); capture.take(waiting)) {
    Bytes bytes;
    for (const auto piece : waiting.bytes) bytes.insert(bytes.end(), piece.begin(), piece.end());
    records.push_back({waiting.frame.stamp, bytes, waiting.frame.original});
  }
  return records;
}

size_t receive_one(PacketPort& port) {
  RxFrame frame;
  const size_t got = port.receive({&frame, 1});
  port.release(got);
  return got;
}

}  // namespace

TEST_CASE("capture: the file holds exactly what passed, both ways, over many turns of the ring") {
  const TemporaryFile file;
  PortClock clock{5000, -1'000'000'000'000};  // the worker's clock is behind wall-clock time
  auto [left, right] = make_memory_pair({8, 2048}, clock, clock);
  std::vector<Record> expected;
  {
    // A ring that is smaller than what passes; the test waits whenever it could be full, so that nothing is dropped.
    FilePort tap(std::move(right), file.path, {.snap_length = 2048, .ring_bytes = 64 * 1024, .classify = false}, clock);
    PacketPort& port = tap.port;
    std::array<RxFrame, 8> frames;
    for (uint32_t i = 0; i < 400; ++i) {
      clock.now += 1000;
      const Bytes bytes = numbered(i, 60 + i * 3);
      const Record record{clock.now + 1'000'000'000'000, bytes, static_cast<uint32_t>(bytes.size())};
      const bool outgoing = i % 3 == 0;
      REQUIRE(send(outgoing ? port : *left, bytes) == 1);
      PacketPort& receiver = outgoing ? *left : port;
      REQUIRE(receiver.receive(frames) == 1);
      CHECK(Bytes(frames[0].data, frames[0].data + frames[0].length) == bytes);
      receiver.release(1);
      expected.push_back(record);
      // Twenty frames are less than the ring holds.
      if (i % 20 == 19) {
        const auto size = [&] { return std::filesystem::file_size(file.path); };
        size_t want = 24;
        for (const Record& r : expected) want += 16 + r.bytes.size();
        while (size() < want && tap.dropped() == 0 && tap.file.error() == 0) ::sched_yield();
      }
    }
    CHECK(tap.dropped() == 0);
    CHECK(tap.file.error() == 0);
  }
  CHECK(read_back(file.path) == expected);
}

TEST_CASE("capture: the destructor writes what is left") {
  const TemporaryFile file;
  PortClock clock;
  auto [left, right] = make_memory_pair({64, 2048}, clock, clock);
  {
    FilePort tap(std::move(right), file.path, {}, clock);
    PacketPort& port = tap.port;
    for (uint32_t i = 0; i < 64; ++i) send(port, numbered(i, 1000));
    CHECK(send(port, numbered(64, 1000)) == 0);  // not consumed: not recorded
  }
  CHECK(read_back(file.path).size() == 64);
}

TEST_CASE("capture: frames that the ring has no room for pass, and are counted") {
  const TemporaryFile file;
  PortClock clock;
  auto [left, right] = make_memory_pair({4, 2048}, clock, clock);
  uint64_t dropped = 0;
  constexpr uint32_t kFrames = 5000;
  {
    FilePort tap(std::move(right), file.path, {.snap_length = 1500, .ring_bytes = 4096}, clock);
    for (uint32_t i = 0; i < kFrames; ++i) {
      REQUIRE(send(*left, numbered(i, 1000)) == 1);
      REQUIRE(receive_one(tap.port) == 1);
    }
    dropped = tap.dropped();
    CHECK(tap.capture->counts(0).seen == kFrames);
    CHECK(tap.capture->counts(0).captured == kFrames - dropped);
  }
  const std::vector<Record> records = read_back(file.path);
  CHECK(dropped > 0);
  CHECK(records.size() + dropped == kFrames);
  REQUIRE(records.size() >= 3);
  for (uint32_t i = 0; i < 3; ++i) CHECK(records[i].bytes == numbered(i, 1000));
}

TEST_CASE("capture: a stripped tag is put back, at every snap length") {
  const Bytes bytes = numbered(1, 60);
  Bytes whole(bytes.begin(), bytes.begin() + 12);
  for (const int byte : {0x88, 0xa8, 0x60, 0x64}) whole.push_back(static_cast<uint8_t>(byte));
  whole.insert(whole.end(), bytes.begin() + 12, bytes.end());
  for (uint32_t snap = 0; snap <= 70; ++snap) {
    CAPTURE(snap);
    const TemporaryFile file;
    PortClock clock;
    auto inner = std::make_unique<TaggedPort>();
    inner->frame = {bytes.data(), 60, 9, 0x6064, true, 0x88a8};
    {
      FilePort tap(std::move(inner), file.path, {.snap_length = snap, .ring_bytes = 4096}, clock);
      PacketPort& port = tap.port;
      RxFrame frame;
      CHECK(port.receive({&frame, 1}) == 1);
      CHECK(frame.data == bytes.data());  // lent on as it is
      CHECK(frame.vlan_stripped);
      CHECK(port.wait_descriptor() == 17);
      CHECK(port.next_deadline() == 18);
      CHECK(port.losses().transmit_errors == 3);
    }
    const size_t kept = std::min<size_t>(snap, 64);
    CHECK(read_back(file.path) ==
          std::vector<Record>{{9, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(kept)), 64}});
  }
}

TEST_CASE("capture: a full disk is reported and frames go on passing") {
  PortClock clock;
  auto [left, right] = make_memory_pair({4, 64}, clock, clock);
  FilePort tap(std::move(right), "/dev/full", {}, clock);
  PacketPort& port = tap.port;
  CHECK(send(port, numbered(1, 60)) == 1);
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  const time_t give_up = t.tv_sec + 5;
  while (tap.file.error() == 0 && t.tv_sec < give_up) {
    ::sched_yield();
    ::clock_gettime(CLOCK_MONOTONIC, &t);
  }
  CHECK(tap.file.error() == ENOSPC);
  CHECK(send(port, numbered(2, 60)) == 1);
}

TEST_CASE("capture: a disk that was full at the very end is reported when the file is finished") {
  PortClock clock;
  auto [left, right] = make_memory_pair({4, 64}, clock, clock);
  FilePort tap(std::move(right), "/dev/full", {}, clock);
  CHECK(send(tap.port, numbered(1, 60)) == 1);
  tap.file.finish();
  CHECK(tap.file.error() == ENOSPC);
  tap.file.finish();
}

TEST_CASE("capture: a ring that is too small or a file that cannot be made is refused") {
  PortClock clock;
  const auto make = [&](const std::string& path, const CaptureOptions& options) {
    FilePort(std::make_unique<TaggedPort>(), path, options, clock);
  };
  const TemporaryFile file;
  constexpr uint32_t kLeast = 2 * (1500 + sizeof(CapturedFrame));
  CHECK_THROWS_AS(make(file.path, {.snap_length = 1500, .ring_bytes = kLeast - 1}), NativeError);
  CHECK_FALSE(std::filesystem::exists(file.path));
  CHECK_THROWS_AS(make("/nonexistent/file.pcap", {}), NativeError);
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
