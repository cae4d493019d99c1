// UDP (RFC 768) as RoCEv2 uses it: destination port 4791, checksum 0 on transmission, also over IPv6 (IBTA annex A17).
#pragma once

#include <cstdint>

#include "wire/bytes.h"

namespace weir {

inline constexpr uint32_t kUdpHeader = 8;
inline constexpr uint16_t kRocePort = 4791;

// Length and checksum are left 0.
inline void store_udp(uint8_t* udp, uint16_t source_port, uint16_t destination_port) {
  store_be16(udp, source_port);
  store_be16(udp + 2, destination_port);
  store_be32(udp + 4, 0);
}

}  // namespace weir
