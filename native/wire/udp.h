// UDP (RFC 768) as RoCEv2 uses it: destination port 4791, checksum 0 on transmission, also over IPv6 (IBTA annex A17).
#pragma once

#include <cstdint>

#include "wire/bytes.h"
#include "wire/checksum.h"
#include "wire/ip.h"
#include "wire/packet.h"

namespace weir {

inline constexpr uint32_t kUdpHeader = 8;
inline constexpr uint16_t kRocePort = 4791;

// Length and checksum are left 0.
inline void store_udp(uint8_t* udp, uint16_t source_port, uint16_t destination_port) {
  store_be16(udp, source_port);
  store_be16(udp + 2, destination_port);
  store_be32(udp + 4, 0);
}

// Whether the UDP checksum of a classified RoCEv2 frame (kind roce or cnp) is 0, meaning none, or right. Reads the whole
// payload: for endpoints, not for a switch.
inline bool udp_checksum_ok(const uint8_t* frame, const PacketMeta& meta) {
  const uint8_t* udp = frame + meta.bth_offset - kUdpHeader;
  if (load_be16(udp + 6) == 0) return true;
  const uint8_t* ip = frame + meta.l3_offset;
  const uint32_t length = load_be16(udp + 4);
  // The pseudo header: both addresses, which are adjacent, then length and protocol.
  uint32_t sum = meta.ip_version == 6 ? checksum_add(0, ip + 8, 32) : checksum_add(0, ip + 12, 8);
  sum = checksum_add(sum + length + kProtocolUdp, udp, length);
  return checksum_fold(sum) == 0xffff;
}

}  // namespace weir
