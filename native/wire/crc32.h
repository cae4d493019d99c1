// CRC-32 of IEEE 802.3 (reflected, polynomial 0xedb88320), the one of the FCS and of the ICRC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir {

// The result is zlib's: `seed` is 0 to begin with or the result over the bytes before. Computed by tables.
uint32_t crc32(const uint8_t* data, size_t length, uint32_t seed);

// Bits of the first bytes that count as ones.
struct CrcMask {
  static constexpr size_t kBytes = 64;
  std::array<uint8_t, 2 * kBytes> bits{};  // the second half stays 0: vectors are read from any byte of the first on
};

// Returns what a register that starts at 0 holds after `data` under `mask`, not inverted. A crc32() that begins with four bytes
// of ones is the complement of this over the bytes that follow them: they cancel its initial value. Multiplies without carries
// where the processor can; reads no byte that is not there.
uint32_t crc32_remainder(const uint8_t* data, size_t length, const CrcMask& mask);

// The ways to do that which this processor has, for tests and benchmarks; all give the same.
struct CrcWay {
  const char* name;
  uint32_t (*remainder)(const uint8_t* data, size_t length, const CrcMask& mask);
};
std::span<const CrcWay> crc32_ways();

}  // namespace weir
