// CRC-32 of IEEE 802.3 (reflected, polynomial 0xedb88320), the one of the FCS and of the ICRC.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir {

// As zlib's: `seed` is 0 to begin with or the result over the bytes before. Uses carry-less multiplication where the
// processor has it, and the tables otherwise; both give the same.
uint32_t crc32(const uint8_t* data, size_t length, uint32_t seed);

// The two ways, for tests and benchmarks. crc32_folded() may only be called where crc32_can_fold().
uint32_t crc32_table(const uint8_t* data, size_t length, uint32_t seed);
uint32_t crc32_folded(const uint8_t* data, size_t length, uint32_t seed);
bool crc32_can_fold();

}  // namespace weir
