#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/native_error.h"
#include "io/pcap_file.h"

using namespace weir;

namespace {

using Bytes = std::vector<uint8_t>;

// A file name of this process's own, removed at the end.
struct TemporaryFile {
  std::string path = (std::filesystem::temp_directory_path() / ("weir-pcap-" + std::to_string(::getpid()))).string();
  ~TemporaryFile() { std::filesystem::remove(path); }
  void fill(const Bytes& bytes) const {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    REQUIRE(file != nullptr);
    REQUIRE(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
    std::fclose(file);
  }
};

// Written by hand from the format's description, so that the reader is not checked against our own writer only.
struct FileBuilder {
  bool big_endian = false;
  Bytes bytes;

  void number(uint32_t value, int size) {
    for (int i = 0; i < size; ++i) bytes.push_back(static_cast<uint8_t>(value >> 8 * (big_endian ? size - 1 - i : i)));
  }
  FileBuilder& header(uint32_t magic, uint32_t link_type = 1, uint32_t major = 2) {
    number(magic, 4);
    number(major, 2);
    number(4, 2);
    number(0, 4);
    number(0, 4);
    number(65535, 4);
    number(link_type, 4);
    return *this;
  }
  FileBuilder& record(uint32_t seconds, uint32_t fraction, const Bytes& frame, uint32_t original = 0) {
    number(seconds, 4);
    number(fraction, 4);
    number(static_cast<uint32_t>(frame.size()), 4);
    number(original == 0 ? static_cast<uint32_t>(frame.size()) : original, 4);
    bytes.insert(bytes.end(), frame.begin(), frame.end());
    return *this;
  }
};

constexpr uint32_t kNano = 0xa1b23c4d;
constexpr uint32_t kMicro = 0xa1b2c3d4;

std::string code_of(const Bytes& file) {
  try {
    const PcapReader reader(file);
    return "";
  } catch (const NativeError& error) {
    return error.code + ": " + error.what() + " / " + error.hint;
  }
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("pcap reader: both byte orders, both units") {
  for (const bool big_endian : {false, true}) {
    for (const uint32_t magic : {kNano, kMicro}) {
      CAPTURE(big_endian);
      CAPTURE(magic);
      FileBuilder file{big_endian, {}};
      file.header(magic).record(7, 123456, Bytes(60, 1)).record(4'000'000'000, 999999, Bytes(14, 2), 1500);
      PcapReader reader(file.bytes);
      const Time unit = magic == kNano ? 1 : 1000;
      CHECK(reader.nanoseconds() == (magic == kNano));
      CHECK(reader.snap_length() == 65535);
      PcapRecord record;
      REQUIRE(reader.next(record));
      CHECK(record.stamp == 7 * kSecond + 123456 * unit);
      CHECK(Bytes(record.bytes.begin(), record.bytes.end()) == Bytes(60, 1));
      CHECK(record.original_length == 60);
      REQUIRE(reader.next(record));
      CHECK(record.stamp == 4'000'000'000 * kSecond + 999999 * unit);
      CHECK(Bytes(record.bytes.begin(), record.bytes.end()) == Bytes(14, 2));
      CHECK(record.original_length == 1500);
      CHECK_FALSE(reader.next(record));
      CHECK(reader.malformed() == 0);
    }
  }
}

TEST_CASE("pcap reader: a file header that cannot be read is refused with its reason") {
  CHECK(contains(code_of({}), "INVALID_PCAP: not a capture that can be read: shorter"));
  CHECK(contains(code_of(Bytes(64, 0)), "no pcap magic number"));
  CHECK(contains(code_of(FileBuilder{}.header(0x0a0d0d0a).bytes), "editcap"));
  CHECK(contains(code_of(FileBuilder{}.header(kNano, 101).bytes), "link type 101"));
  CHECK(contains(code_of(FileBuilder{}.header(kNano, 1, 3).bytes), "version 3"));
  CHECK(contains(code_of(FileBuilder{true, {}}.header(kNano, 1, 513).bytes), "version 513"));
  CHECK(code_of(FileBuilder{true, {}}.header(kMicro).bytes) == "");
}

TEST_CASE("pcap reader: cut off at every length") {
  FileBuilder file;
  file.header(kNano);
  std::vector<size_t> ends = {file.bytes.size()};
  for (const size_t length : {60, 0, 17}) {
    file.record(1, 2, Bytes(length, 9));
    ends.push_back(file.bytes.size());
  }
  for (size_t length = 0; length <= file.bytes.size(); ++length) {
    CAPTURE(length);
    const Bytes cut(file.bytes.begin(), file.bytes.begin() + static_cast<std::ptrdiff_t>(length));  // exact, for ASan
    if (length < ends[0]) {
      CHECK_THROWS_AS(PcapReader{cut}, NativeError);
      continue;
    }
    PcapReader reader(cut);
    PcapRecord record;
    size_t whole = 0;
    while (reader.next(record)) ++whole;
    size_t expected = 0;
    while (expected + 1 < ends.size() && ends[expected + 1] <= length) ++expected;
    CHECK(whole == expected);
    CHECK(reader.malformed() == (ends[expected] == length ? 0 : 1));
    CHECK_FALSE(reader.next(record));
    CHECK(reader.malformed() == (ends[expected] == length ? 0 : 1));
  }
}

TEST_CASE("pcap reader: a record length is bounded, whatever the file says") {
  FileBuilder file;
  file.header(kNano).record(0, 0, Bytes(kMaxPcapRecord, 5));
  PcapReader longest(file.bytes);
  PcapRecord record;
  CHECK(longest.next(record));
  CHECK(record.bytes.size() == kMaxPcapRecord);

  FileBuilder more;
  more.header(kNano).record(0, 0, Bytes(kMaxPcapRecord + 1, 5));
  PcapReader reader(more.bytes);
  CHECK_FALSE(reader.next(record));
  CHECK(reader.malformed() == 1);
}

TEST_CASE("pcap reader: any byte may be anything") {
  FileBuilder file;
  file.header(kNano).record(1, 2, Bytes(20, 9)).record(3, 4, Bytes(30, 8));
  for (size_t at = 0; at < file.bytes.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      Bytes mutant = file.bytes;
      mutant[at] = static_cast<uint8_t>(value);
      try {
        PcapReader reader(mutant);
        PcapRecord record;
        size_t bytes = 24;
        while (reader.next(record)) bytes += 16 + record.bytes.size();
        REQUIRE(bytes <= mutant.size());
        REQUIRE((bytes == mutant.size()) == (reader.malformed() == 0));
      } catch (const NativeError& error) {
        REQUIRE(error.code == "INVALID_PCAP");
      }
    }
  }
}

TEST_CASE("pcap writer: what is written is read again, cut to the snap length") {
  const TemporaryFile file;
  {
    PcapWriter writer(file.path, 100);
    writer.write(1'700'000'000'123'456'789, Bytes(100, 1));
    writer.write(1'700'000'000'123'456'790, Bytes(101, 2));
    writer.write(-5, Bytes{});
    CHECK(writer.error() == 0);
  }
  PortClock clock{1000, 0};
  PcapReaderPort port(file.path, 500, clock);
  std::array<RxFrame, 4> frames;
  REQUIRE(port.receive(frames) == 2);  // the second is not whole: it cannot be replayed
  CHECK(Bytes(frames[0].data, frames[0].data + frames[0].length) == Bytes(100, 1));
  CHECK(frames[0].stamp == 500);
  CHECK(frames[1].length == 0);
  CHECK(frames[1].stamp == 500);  // stamps that go back do not
  CHECK(port.losses().receive_truncated == 1);
  CHECK(port.malformed() == 0);
}

TEST_CASE("pcap writer: errors are kept, and thrown when the file cannot be made") {
  CHECK_THROWS_AS(PcapWriter("/nonexistent/file.pcap"), NativeError);
  PcapWriter writer("/dev/full");
  writer.flush();
  CHECK(writer.error() == ENOSPC);
}

TEST_CASE("pcap replay: frames come at their recorded distance from the start") {
  const TemporaryFile file;
  FileBuilder builder;
  builder.header(kMicro).record(10, 500'000, Bytes(60, 1)).record(10, 500'003, Bytes(61, 2)).record(12, 0, Bytes(62, 3));
  builder.record(11, 0, Bytes(63, 4)).number(1, 4);  // and a stray word
  file.fill(builder.bytes);
  PortClock clock{0, 0};
  PcapReaderPort port(file.path, 1000, clock);
  std::array<RxFrame, 4> frames;
  CHECK(port.next_deadline() == 1000);
  CHECK(port.receive(frames) == 0);
  clock.now = 1000;
  REQUIRE(port.receive(frames) == 1);
  CHECK(frames[0].length == 60);
  CHECK(frames[0].stamp == 1000);
  CHECK(port.next_deadline() == 4000);
  clock.now = 3999;
  CHECK(port.receive(frames) == 0);
  clock.now = 10 * kSecond;  // late: the stamps are still exact
  REQUIRE(port.receive({frames.data(), 2}) == 2);
  CHECK(frames[0].stamp == 4000);
  CHECK(frames[1].stamp == 1000 + 1'500'000'000);
  REQUIRE(port.receive(frames) == 1);
  CHECK(frames[0].length == 63);
  CHECK(frames[0].stamp == 1000 + 1'500'000'000);
  CHECK(port.next_deadline() == kNever);
  CHECK(port.malformed() == 1);
  const TxFrame sent{frames[0].data, 10};
  CHECK(port.transmit({&sent, 1}).sent == 1);
}

TEST_CASE("pcap replay: a file that is not there") {
  PortClock clock;
  try {
    PcapReaderPort port("/nonexistent/file.pcap", 0, clock);
    FAIL("opened");
  } catch (const NativeError& error) {
    CHECK(error.code == "ENOENT");
  }
}
