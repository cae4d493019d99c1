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

}  // namespace

TEST_CASE("crc32: the check value of the CRC catalogue") {
  const char* text = "123456789";
  CHECK(crc32(reinterpret_cast<const uint8_t*>(text), std::strlen(text), 0) == 0xcbf43926);
  CHECK(crc32(nullptr, 0, 0) == 0);
  CHECK(crc32(nullptr, 0, 0x12345678) == 0x12345678);
}

TEST_CASE("crc32: tables and folding agree with the definition at every length and alignment") {
  if (!crc32_can_fold()) MESSAGE("no PCLMULQDQ here: only the tables are tested");
  Random random(2);
  for (size_t length = 0; length <= 300; ++length) {
    for (size_t alignment = 0; alignment < 16; ++alignment) {
      // Ends with the allocation, so that reading ahead is seen.
      const std::unique_ptr<uint8_t[]> memory(new uint8_t[alignment + length]);
      uint8_t* data = memory.get() + alignment;
      for (size_t i = 0; i < length; ++i) data[i] = static_cast<uint8_t>(random.next());
      const uint32_t expected = crc32_bitwise(data, length);
      REQUIRE(crc32_table(data, length, 0) == expected);
      if (crc32_can_fold()) REQUIRE(crc32_folded(data, length, 0) == expected);
      REQUIRE(crc32(data, length, 0) == expected);
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
