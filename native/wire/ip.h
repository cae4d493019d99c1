// IPv4 (RFC 791) and IPv6 (RFC 8200) headers: sizes, field offsets, and emitters. classify() is the parser.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/describe.h"
#include "wire/bytes.h"
#include "wire/checksum.h"

namespace weir {

inline constexpr uint32_t kIpv4Header = 20;         // without options
inline constexpr uint32_t kIpv4MaximumHeader = 60;  // IHL 15
inline constexpr uint32_t kIpv6Header = 40;

inline constexpr uint8_t kProtocolIcmp = 1;
inline constexpr uint8_t kProtocolTcp = 6;
inline constexpr uint8_t kProtocolUdp = 17;
inline constexpr uint8_t kProtocolIcmpv6 = 58;
inline constexpr uint8_t kProtocolSctp = 132;

inline constexpr uint32_t kTcpHeader = 20;  // without options (RFC 9293)
// Offsets of the checksum field from the start of the transport header.
inline constexpr uint16_t kTcpChecksum = 16;
inline constexpr uint16_t kUdpChecksum = 6;

// IPv4 in the first 4 bytes, network order.
struct IpAddress {
  uint8_t version = 4;
  uint8_t bytes[16] = {};
  bool operator==(const IpAddress&) const = default;
};
void describe(auto& v, Of<IpAddress> auto& address) {
  v.type("NativeIpAddress", "An IP address.");
  v("version", address.version, field::any("4 or 6."));
  v("bytes", address.bytes, field::any("Network order; IPv4: 4 bytes."));
}
inline constexpr uint32_t ip_address_length(uint8_t version) { return version == 6 ? 16 : 4; }
// Offset of the source address in a header; the destination follows it.
inline constexpr uint32_t ip_source_offset(uint8_t version) { return version == 6 ? 8 : 12; }

// Length of the header at `ip`: any version but 6 is read as IPv4.
inline uint32_t ip_header_length(const uint8_t* ip) { return ip[0] >> 4 == 6 ? kIpv6Header : (ip[0] & 0x0fu) * 4; }
// Length of the whole datagram as the header states it.
inline uint32_t ip_total_length(const uint8_t* ip) {
  return ip[0] >> 4 == 6 ? kIpv6Header + load_be16(ip + 4) : load_be16(ip + 2);
}

// Checksum of UDP, TCP or ICMPv6 at `transport`, `length` bytes: with the pseudo header (RFC 768; RFC 8200, 8.1) of the IP header
// at `ip`. It is 0 where the checksum in the header is right; where that field is 0, it is the value to write there.
inline uint16_t transport_checksum(const uint8_t* ip, uint8_t protocol, const uint8_t* transport, uint32_t length) {
  const uint8_t version = ip[0] >> 4 == 6 ? 6 : 4;
  uint8_t tail[8] = {};
  store_be32(tail, length);
  tail[7] = protocol;
  uint32_t sum = checksum_add(0, ip + ip_source_offset(version), 2 * ip_address_length(version));
  sum = checksum_add(sum, tail, sizeof tail);
  return static_cast<uint16_t>(~checksum_fold(checksum_add(sum, transport, length)));
}

// DF set and identification 0, which RFC 6864 allows for datagrams that are never fragmented. Length and checksum are
// left 0 for ip_set_length().
inline void store_ipv4(uint8_t* ip, uint8_t protocol, uint8_t traffic_class, uint8_t ttl, const uint8_t* source,
                       const uint8_t* destination) {
  std::memset(ip, 0, kIpv4Header);
  ip[0] = 0x45;
  ip[1] = traffic_class;
  ip[6] = 0x40;
  ip[8] = ttl;
  ip[9] = protocol;
  std::memcpy(ip + 12, source, 4);
  std::memcpy(ip + 16, destination, 4);
}
// Flow label 0. The length is left 0 for ip_set_length().
inline void store_ipv6(uint8_t* ip, uint8_t next_header, uint8_t traffic_class, uint8_t hop_limit, const uint8_t* source,
                       const uint8_t* destination) {
  store_be32(ip, 6u << 28 | static_cast<uint32_t>(traffic_class) << 20);
  store_be16(ip + 4, 0);
  ip[6] = next_header;
  ip[7] = hop_limit;
  std::memcpy(ip + 8, source, 16);
  std::memcpy(ip + 24, destination, 16);
}
inline void ip_set_traffic_class(uint8_t* ip, uint8_t traffic_class) {
  if (ip[0] >> 4 == 6) {
    store_be16(ip, static_cast<uint16_t>(0x6000 | traffic_class << 4 | (ip[1] & 0x0f)));
  } else {
    ip[1] = traffic_class;
  }
}
// Writes the length of the datagram, header included, and for IPv4 the checksum of the finished header.
inline void ip_set_length(uint8_t* ip, uint16_t total_length) {
  if (ip[0] >> 4 == 6) {
    store_be16(ip + 4, static_cast<uint16_t>(total_length - kIpv6Header));
  } else {
    store_be16(ip + 2, total_length);
    store_be16(ip + 10, 0);
    store_be16(ip + 10, internet_checksum(ip, ip_header_length(ip)));
  }
}

}  // namespace weir
