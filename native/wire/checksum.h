// The Internet checksum (RFC 1071) and its incremental update (RFC 1624).
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/bytes.h"

namespace weir {

// One's complement sum of 16-bit words, not folded; an odd last byte is padded with zero. `length` below 128 KiB.
inline uint32_t checksum_add(uint32_t sum, const uint8_t* data, size_t length) {
  for (; length >= 2; data += 2, length -= 2) sum += load_be16(data);
  if (length == 1) sum += static_cast<uint32_t>(data[0]) << 8;
  return sum;
}
inline uint16_t checksum_fold(uint32_t sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum + (sum >> 16));
}
// Of `length` bytes in which the checksum field is zero. Over bytes with a right checksum in place the result is 0.
inline uint16_t internet_checksum(const uint8_t* data, size_t length) {
  return static_cast<uint16_t>(~checksum_fold(checksum_add(0, data, length)));
}
// The checksum after one 16-bit word under it went from `before` to `after` (RFC 1624 equation 3).
inline uint16_t checksum_update(uint16_t checksum, uint16_t before, uint16_t after) {
  const uint32_t sum = static_cast<uint32_t>(static_cast<uint16_t>(~checksum)) + static_cast<uint16_t>(~before) + after;
  return static_cast<uint16_t>(~checksum_fold(sum));
}

}  // namespace weir
