// Big-endian loads and stores at any alignment. The caller knows that the bytes are there.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace weir {

static_assert(std::endian::native == std::endian::little, "loads and stores swap bytes");

inline uint16_t load_be16(const uint8_t* p) { return static_cast<uint16_t>(p[0] << 8 | p[1]); }
inline uint32_t load_be32(const uint8_t* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return __builtin_bswap32(value);
}
inline uint64_t load_be48(const uint8_t* p) { return static_cast<uint64_t>(load_be16(p)) << 32 | load_be32(p + 2); }
inline uint64_t load_be64(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof value);
  return __builtin_bswap64(value);
}

inline void store_be16(uint8_t* p, uint16_t value) {
  value = __builtin_bswap16(value);
  std::memcpy(p, &value, sizeof value);
}
inline void store_be32(uint8_t* p, uint32_t value) {
  value = __builtin_bswap32(value);
  std::memcpy(p, &value, sizeof value);
}
// The low 48 bits of `value`.
inline void store_be48(uint8_t* p, uint64_t value) {
  store_be16(p, static_cast<uint16_t>(value >> 32));
  store_be32(p + 2, static_cast<uint32_t>(value));
}
inline void store_be64(uint8_t* p, uint64_t value) {
  value = __builtin_bswap64(value);
  std::memcpy(p, &value, sizeof value);
}

}  // namespace weir
