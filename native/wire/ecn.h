// Writing the ECN field (RFC 3168) of a frame that is passing through.
#pragma once

#include <cstdint>

#include "wire/bytes.h"
#include "wire/checksum.h"
#include "wire/packet.h"

namespace weir {

inline constexpr uint8_t kNotEct = 0, kCe = 3;  // RFC 3168

// Puts meta.ecn into the IP header of a frame that classify() filled `meta` from, in place, with the IPv4 header checksum
// updated (RFC 1624). A frame whose IP part was refused or that has none stays as it is. The ICRC does not cover the field.
inline void write_ecn(uint8_t* frame, const PacketMeta& meta) {
  if (meta.l3_offset == 0) return;
  uint8_t* ip = frame + meta.l3_offset;
  if (meta.ip_version == 6) {
    ip[1] = static_cast<uint8_t>((ip[1] & ~0x30) | (meta.ecn & 3) << 4);
    return;
  }
  const uint16_t before = load_be16(ip);
  const uint16_t after = static_cast<uint16_t>((before & ~3) | (meta.ecn & 3));
  store_be16(ip, after);
  store_be16(ip + 10, checksum_update(load_be16(ip + 10), before, after));
}

}  // namespace weir
