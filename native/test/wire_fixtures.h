// Golden frames for the wire tests: a reader of the captures in test/fixtures/pcaps, and frames in exact-size memory.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weir::test {

using Bytes = std::vector<uint8_t>;

inline constexpr const char* kCaptures[] = {"ops_rc",  "ops_rc6",    "ops_uc",    "ops_ud",
                                            "ops_ud6", "nak_access", "ce_marked", "cnp_injected"};

// Every frame of test/fixtures/pcaps/<name>.pcap.
inline std::vector<Bytes> read_capture(const std::string& name) {
  const char* root = std::getenv("WEIR_FIXTURES");
#ifdef WEIR_FIXTURES_DIR
  if (root == nullptr) root = WEIR_FIXTURES_DIR;
#endif
  REQUIRE_MESSAGE(root != nullptr, "set WEIR_FIXTURES to <repository>/test/fixtures");
  const std::string path = std::string(root) + "/pcaps/" + name + ".pcap";
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.is_open(), path);
  const Bytes bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto word = [&](size_t offset) {
    uint32_t value;
    REQUIRE(offset + sizeof value <= bytes.size());
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  };
  REQUIRE(word(0) == 0xa1b2c3d4);
  std::vector<Bytes> frames;
  for (size_t offset = 24; offset < bytes.size();) {
    const size_t length = word(offset + 8);
    offset += 16;
    REQUIRE(offset + length <= bytes.size());
    frames.emplace_back(bytes.data() + offset, bytes.data() + offset + length);
    offset += length;
  }
  REQUIRE(!frames.empty());
  return frames;
}

// A heap copy of exactly `bytes.size()` bytes, so that AddressSanitizer sees any read behind the end.
class ExactFrame {
 public:
  explicit ExactFrame(std::span<const uint8_t> bytes)
      : data_(new uint8_t[bytes.size()]), length_(static_cast<uint32_t>(bytes.size())) {
    std::copy(bytes.begin(), bytes.end(), data_.get());
  }
  uint8_t* data() { return data_.get(); }
  uint32_t length() const { return length_; }

 private:
  std::unique_ptr<uint8_t[]> data_;
  uint32_t length_;
};

}  // namespace weir::test
