#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/random.h"
#include "wire/crc32.h"

using namespace weir;

namespace {

// One bit at a time, from the definition.
uint32_t crc32_bitwise(const uint8_t* data, size_t length) {
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < length; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
  }
  return ~crc;
}

// Random bytes that begin `alignment` behind the start of an allocation and end with it, so that reading ahead is seen.
struct Exact {
  Exact(Random& random, size_t alignment, size_t length)
      : memory(new uint8_t[alignment + length]), data(memory.get() + alignment) {
    for (size_t i = 0; i < length; ++i) data[i] = static_cast<uint8_t>(random.next());
  }
  std::unique_ptr<uint8_t[]> memory;
  uint8_t* data;
};

}  // namespace

TEST_CASE("crc32: the check value of the CRC catalogue") {
  const char* text = "123456789";
  CHECK(crc32(reinterpret_cast<const uint8_t*>(text), std::strlen(text), 0) == 0xcbf43926);
  CHECK(crc32(nullptr, 0, 0) == 0);
  CHECK(crc32(nullptr, 0, 0x12345678) == 0x12345678);
}

TEST_CASE("crc32: agrees with the definition at every length and alignment") {
  Random random(2);
  for (size_t length = 0; length <= 300; ++length) {
    for (size_t alignment = 0; alignment < 16; ++alignment) {
      const Exact bytes(random, alignment, length);
      REQUIRE(crc32(bytes.data, length, 0) == crc32_bitwise(bytes.data, length));
    }
  }
}

TEST_CASE("crc32 remainder: every way agrees with the definition at every length and alignment, with and without a mask") {
  if (crc32_ways().size() < 3)
    MESSAGE("only ", std::string(crc32_ways().back().name), " and what comes before it are tested here");
  Random random(4);
  CrcMask mask;
  for (size_t length = 0; length <= 1'200; length += length < 700 ? 1 : 13) {
    for (size_t alignment = 0; alignment < 64; alignment += length < 140 ? 1 : 7) {
      const bool masked = random.next() % 2 == 0;
      for (size_t i = 0; i < CrcMask::kBytes; ++i) mask.bits[i] = masked ? static_cast<uint8_t>(random.next()) : uint8_t{0};
      const Exact bytes(random, alignment, length);
      // Ones in front cancel the initial value.
      std::vector<uint8_t> whole(4, 0xff);
      for (size_t i = 0; i < length; ++i) {
        whole.push_back(bytes.data[i] | (i < CrcMask::kBytes ? mask.bits[i] : uint8_t{0}));
      }
      const uint32_t expected = ~crc32_bitwise(whole.data(), whole.size());
      REQUIRE(crc32_remainder(bytes.data, length, mask) == expected);
      for (const CrcWay& way : crc32_ways()) {
        CAPTURE(way.name);
        CAPTURE(length);
        REQUIRE(way.remainder(bytes.data, length, mask) == expected);
      }
    }
  }
}

TEST_CASE("crc32: continues from the result over the bytes before") {
  Random random(3);
  std::vector<uint8_t> data(4200);
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random.next());
  const uint32_t whole = crc32_bitwise(data.data(), data.size());
  for (size_t split = 0; split <= data.size(); split += 13) {
    REQUIRE(crc32(data.data() + split, data.size() - split, crc32(data.data(), split, 0)) == whole);
  }
}
