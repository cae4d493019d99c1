#include <doctest/doctest.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "base/native_error.h"
#include "io/capture.h"
#include "io/memory_port.h"

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
  return port.transmit({&frame, 1});
}

// Receives one frame whose tag was stripped.
struct TaggedPort final : PacketPort {
  RxFrame frame;
  size_t receive(std::span<RxFrame> frames) override {
    frames[0] = frame;
    return 1;
  }
  void release(size_t) override {}
  size_t transmit(std::span<const TxFrame>) override { return 0; }
  int wait_descriptor() const override { return 17; }
  Time next_deadline() const override { return 18; }
  PortLosses losses() override { return {1, 2, 3}; }
};

}  // namespace

TEST_CASE("capture: the file holds exactly what passed, both ways, over many turns of the ring") {
  const TemporaryFile file;
  PortClock clock{5000, -1'000'000'000'000};  // the worker's clock is behind wall-clock time
  auto [left, right] = make_memory_pair({8, 2048}, clock, clock);
  std::vector<Record> expected;
  {
    // A ring that is smaller than what passes; the test waits whenever it could be full, so that nothing is dropped.
    CapturePort port(std::move(right), {.path = file.path, .snap_length = 2048, .ring_bytes = 64 * 1024}, clock);
    std::array<RxFrame, 8> frames;
    for (uint32_t i = 0; i < 400; ++i) {
      clock.now += 1000;
      const Bytes bytes = numbered(i, 60 + i * 3);
      const Record record{clock.now + 1'000'000'000'000, bytes, static_cast<uint32_t>(bytes.size())};
      const bool outgoing = i % 3 == 0;
      REQUIRE(send(outgoing ? static_cast<PacketPort&>(port) : *left, bytes) == 1);
      PacketPort& receiver = outgoing ? *left : static_cast<PacketPort&>(port);
      REQUIRE(receiver.receive(frames) == 1);
      CHECK(Bytes(frames[0].data, frames[0].data + frames[0].length) == bytes);
      receiver.release(1);
      expected.push_back(record);
      // Twenty frames are less than the ring holds.
      if (i % 20 == 19) {
        const auto size = [&] { return std::filesystem::file_size(file.path); };
        size_t want = 24;
        for (const Record& r : expected) want += 16 + r.bytes.size();
        while (size() < want && port.capture_dropped() == 0 && port.write_error() == 0) ::sched_yield();
      }
    }
    CHECK(port.capture_dropped() == 0);
    CHECK(port.write_error() == 0);
  }
  CHECK(read_back(file.path) == expected);
}

TEST_CASE("capture: the destructor writes what is left") {
  const TemporaryFile file;
  PortClock clock;
  auto [left, right] = make_memory_pair({64, 2048}, clock, clock);
  {
    CapturePort port(std::move(right), {.path = file.path}, clock);
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
    CapturePort port(std::move(right), {.path = file.path, .snap_length = 1500, .ring_bytes = 4096}, clock);
    std::array<RxFrame, 1> frames;
    for (uint32_t i = 0; i < kFrames; ++i) {
      REQUIRE(send(*left, numbered(i, 1000)) == 1);
      REQUIRE(port.receive(frames) == 1);
      port.release(1);
    }
    dropped = port.capture_dropped();
  }
  const std::vector<Record> records = read_back(file.path);
  CHECK(dropped > 0);
  CHECK(records.size() + dropped == kFrames);
  REQUIRE(records.size() >= 4);
  for (uint32_t i = 0; i < 4; ++i) CHECK(records[i].bytes == numbered(i, 1000));
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
      CapturePort port(std::move(inner), {.path = file.path, .snap_length = snap, .ring_bytes = 4096}, clock);
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
  CapturePort port(std::move(right), {.path = "/dev/full"}, clock);
  CHECK(send(port, numbered(1, 60)) == 1);
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  const time_t give_up = t.tv_sec + 5;
  while (port.write_error() == 0 && t.tv_sec < give_up) {
    ::sched_yield();
    ::clock_gettime(CLOCK_MONOTONIC, &t);
  }
  CHECK(port.write_error() == ENOSPC);
  CHECK(send(port, numbered(2, 60)) == 1);
}

TEST_CASE("capture: a ring that is too small or a file that cannot be made is refused") {
  PortClock clock;
  const auto make = [&](const CaptureOptions& options) { CapturePort(std::make_unique<TaggedPort>(), options, clock); };
  const TemporaryFile file;
  CHECK_THROWS_AS(make({.path = file.path, .snap_length = 1500, .ring_bytes = 3031}), NativeError);
  CHECK_FALSE(std::filesystem::exists(file.path));
  CHECK_THROWS_AS(make({.path = "/nonexistent/file.pcap"}), NativeError);
}
