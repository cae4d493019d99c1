// Packet sequence numbers: 24 bits that wrap, compared by their distance (IBTA volume 1, 9.7.1).
#pragma once

#include <cstdint>

namespace weir {

inline constexpr uint32_t kPsnMask = 0xff'ffff;
// That one request may take up: the PSN behind it has to be ahead of its first.
inline constexpr uint32_t kMostPsns = (1u << 23) - 1;

constexpr uint32_t psn_add(uint32_t psn, uint32_t count) { return (psn + count) & kPsnMask; }
// a - b, from -2^23 to 2^23 - 1: negative when a is before b.
constexpr int32_t psn_distance(uint32_t a, uint32_t b) { return static_cast<int32_t>((a - b) << 8) >> 8; }
// PSNs that so many bytes take up: nothing is a packet too.
constexpr uint32_t packets_of(uint32_t bytes, uint32_t path_mtu) { return bytes == 0 ? 1 : (bytes - 1) / path_mtu + 1; }

}  // namespace weir
