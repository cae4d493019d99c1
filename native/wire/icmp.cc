#include "wire/icmp.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "wire/checksum.h"

namespace weir {
namespace {

constexpr uint8_t kErrorTtl = 64;
constexpr uint8_t kErrorClass = 48 << 2;  // CS6, network control (RFC 1812, 4.3.2.5)

struct TypeAndCode {
  uint8_t type, code;
};
// Both are indexed by IcmpError.
constexpr std::array<TypeAndCode, 5> kOfIpv4{{{11, 0}, {3, 0}, {3, 1}, {3, 3}, {3, 4}}};
constexpr std::array<TypeAndCode, 5> kOfIpv6{{{3, 0}, {1, 0}, {1, 3}, {1, 4}, {2, 0}}};

bool is_error(uint8_t version, uint8_t type) {
  if (version == 6) return type < 128;
  return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

// The address is neither unspecified, nor loopback, nor a group, nor broadcast.
bool is_single_host(bool ipv6, const uint8_t* address) {
  if (!ipv6) return address[0] < 224 && address[0] != 0 && address[0] != 127;
  return address[0] != 0xff && std::any_of(address, address + 15, [](uint8_t byte) { return byte != 0; });
}

}  // namespace

bool may_answer_with_error(const uint8_t* ip, uint32_t present) {
  const bool ipv6 = ip[0] >> 4 == 6;
  const uint32_t header = ip_header_length(ip);
  const uint8_t protocol = ipv6 ? ip[6] : ip[9];
  if (!ipv6 && (load_be16(ip + 6) & 0x1fff) != 0) return false;
  if (!is_single_host(ipv6, ip + ip_source_offset(ipv6 ? 6 : 4))) return false;
  if (protocol != (ipv6 ? kProtocolIcmpv6 : kProtocolIcmp)) return true;
  return present > header && !is_error(ipv6 ? 6 : 4, ip[header]);
}

uint32_t build_icmp_error(uint8_t* out, uint32_t room, const LinkHeader& link, const IpAddress& own, const uint8_t* quoted,
                          uint32_t present, IcmpError error, uint32_t mtu) {
  const bool ipv6 = own.version == 6;
  const uint32_t start = store_ethernet(out, link, ipv6 ? kEthertypeIpv6 : kEthertypeIpv4);
  uint8_t* const ip = out + start;
  const uint32_t header = ipv6 ? kIpv6Header : kIpv4Header;
  (ipv6 ? store_ipv6 : store_ipv4)(ip, ipv6 ? kProtocolIcmpv6 : kProtocolIcmp, kErrorClass, kErrorTtl, own.bytes,
                                   quoted + ip_source_offset(own.version));
  uint8_t* const icmp = ip + header;
  const uint32_t length =
      kIcmpHeader + std::min({present, ip_total_length(quoted), kMostQuoted, room - start - header - kIcmpHeader});
  const auto [type, code] = (ipv6 ? kOfIpv6 : kOfIpv4)[static_cast<size_t>(error)];
  std::memset(icmp, 0, kIcmpHeader);
  icmp[0] = type;
  icmp[1] = code;
  // RFC 1191, section 4, has 16 bits for it; RFC 4443, 3.2, 32.
  if (error == IcmpError::too_big) store_be32(icmp + 4, ipv6 ? mtu : std::min(mtu, 0xffffu));
  std::memcpy(icmp + kIcmpHeader, quoted, length - kIcmpHeader);
  ip_set_length(ip, static_cast<uint16_t>(header + length));
  store_be16(icmp + 2, ipv6 ? transport_checksum(ip, kProtocolIcmpv6, icmp, length) : internet_checksum(icmp, length));
  const uint32_t whole = start + header + length;
  if (whole >= kMinimumFrame) return whole;
  std::memset(out + whole, 0, kMinimumFrame - whole);
  return kMinimumFrame;
}

bool is_echo_request(const uint8_t* ip, uint32_t present) {
  const bool ipv6 = ip[0] >> 4 == 6;
  const uint32_t header = ip_header_length(ip), total = ip_total_length(ip);
  if (total > present || total < header + kIcmpHeader || !is_single_host(ipv6, ip + ip_source_offset(ipv6 ? 6 : 4))) return false;
  if (ipv6 ? ip[6] != kProtocolIcmpv6 : ip[9] != kProtocolIcmp || (load_be16(ip + 6) & 0x3fff) != 0) return false;
  const uint8_t* const icmp = ip + header;
  const uint32_t length = total - header;
  if (icmp[0] != (ipv6 ? 128 : 8) || icmp[1] != 0) return false;
  return (ipv6 ? transport_checksum(ip, kProtocolIcmpv6, icmp, length) : internet_checksum(icmp, length)) == 0;
}

bool make_echo_reply(uint8_t* ip, uint32_t present) {
  if (!is_echo_request(ip, present)) return false;
  const bool ipv6 = ip[0] >> 4 == 6;
  uint8_t* const icmp = ip + ip_header_length(ip);
  const uint16_t before = load_be16(icmp);
  icmp[0] = ipv6 ? 129 : 0;
  // Addresses change places, which no sum sees.
  store_be16(icmp + 2, checksum_update(load_be16(icmp + 2), before, load_be16(icmp)));
  const uint32_t bytes = ip_address_length(ipv6 ? 6 : 4);
  uint8_t* const source = ip + ip_source_offset(ipv6 ? 6 : 4);
  std::swap_ranges(source, source + bytes, source + bytes);
  ip[ipv6 ? 7 : 8] = kErrorTtl;
  ip_set_length(ip, static_cast<uint16_t>(ip_total_length(ip)));
  return true;
}

}  // namespace weir
