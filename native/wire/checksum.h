// The Internet checksum (RFC 1071) and its incremental update (RFC 1624).
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/bytes.h"

namespace weir {

// One's complement sums of words of any width are the same number (RFC 1071, section 2), also in the other byte order once the
// result's bytes are swapped. So 64 bits are added at a time, as they lie in memory, and the carry comes back in below.
inline uint64_t add_with_carry(uint64_t sum, uint64_t word) {
  sum += word;
  return sum + (sum < word ? 1 : 0);
}
inline uint64_t load_words(const uint8_t* data) {
  uint64_t words;
  std::memcpy(&words, data, sizeof words);
  return words;
}

// One's complement sum of big-endian 16-bit words, added to `sum`, not folded; an odd last byte is padded with zero. A call adds
// at most 0xffff, and 0 only if all bytes are.
inline uint32_t checksum_add(uint32_t sum, const uint8_t* data, size_t length) {
  uint64_t total = 0;
  if (length >= 32) {
    uint64_t a = 0, b = 0, c = 0, d = 0;  // no addition waits for the one before
    for (; length >= 32; data += 32, length -= 32) {
      a = add_with_carry(a, load_words(data));
      b = add_with_carry(b, load_words(data + 8));
      c = add_with_carry(c, load_words(data + 16));
      d = add_with_carry(d, load_words(data + 24));
    }
    total = add_with_carry(add_with_carry(a, b), add_with_carry(c, d));
  }
  for (; length >= 8; data += 8, length -= 8) total = add_with_carry(total, load_words(data));
  uint64_t rest = 0;  // at most 7 bytes
  if ((length & 4) != 0) {
    uint32_t word;
    std::memcpy(&word, data, sizeof word);
    rest = word;
    data += 4;
  }
  if ((length & 2) != 0) {
    uint16_t half;
    std::memcpy(&half, data, sizeof half);
    rest += half;
    data += 2;
  }
  if ((length & 1) != 0) rest += *data;
  total = add_with_carry(total, rest);
  total = (total & 0xffffffff) + (total >> 32);
  total = (total & 0xffff) + (total >> 16 & 0xffff) + (total >> 32);
  total = (total & 0xffff) + (total >> 16);
  total = (total & 0xffff) + (total >> 16);
  return sum + __builtin_bswap16(static_cast<uint16_t>(total));
}
inline uint16_t checksum_fold(uint32_t sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum + (sum >> 16));
}
// Checksum of `length` bytes in which the checksum field is zero. Over bytes with a right checksum in place the result is 0.
inline uint16_t internet_checksum(const uint8_t* data, size_t length) {
  return static_cast<uint16_t>(~checksum_fold(checksum_add(0, data, length)));
}
// The checksum after one 16-bit word under it went from `before` to `after` (RFC 1624 equation 3).
inline uint16_t checksum_update(uint16_t checksum, uint16_t before, uint16_t after) {
  const uint32_t sum = static_cast<uint32_t>(static_cast<uint16_t>(~checksum)) + static_cast<uint16_t>(~before) + after;
  return static_cast<uint16_t>(~checksum_fold(sum));
}

}  // namespace weir
