// Checksums by a straightforward second formulation, for tests to compare with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "wire/checksum.h"
#include "wire/ip.h"
#include "wire/packet.h"
#include "wire/udp.h"

namespace weir::test {

// RFC 1071 as written down there, one 16-bit word at a time, folding at once.
inline uint16_t reference_sum(const std::vector<uint8_t>& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    sum += bytes[i] * 256u + (i + 1 < bytes.size() ? bytes[i + 1] : 0u);
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<uint16_t>(sum);
}

// RFC 768 and RFC 8200, of a frame whose IP header is at `l3`, and TCP or UDP at `l4`.
inline std::vector<uint8_t> pseudo_header(const std::vector<uint8_t>& frame, uint32_t l3, uint32_t l4) {
  const bool ipv6 = frame[l3] >> 4 == 6;
  const uint32_t addresses = l3 + (ipv6 ? 8 : 12);
  std::vector<uint8_t> pseudo(frame.begin() + addresses, frame.begin() + addresses + (ipv6 ? 32 : 8));
  const uint32_t length = static_cast<uint32_t>(frame.size()) - l4;
  uint8_t protocol = ipv6 ? frame[l3 + 6] : frame[l3 + 9];
  if (ipv6 && protocol == 60) protocol = frame[l3 + 40];
  for (const uint32_t byte : {length >> 24, length >> 16, length >> 8, length, 0u, 0u, 0u, uint32_t{protocol}}) {
    pseudo.push_back(static_cast<uint8_t>(byte));
  }
  return pseudo;
}

// Whether the UDP checksum of a classified RoCEv2 frame (kind roce or cnp) is 0, meaning none, or right.
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

}  // namespace weir::test
