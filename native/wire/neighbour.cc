#include "wire/neighbour.h"

#include <cstring>

#include "wire/checksum.h"
#include "wire/icmp.h"
#include "wire/tags.h"

namespace weir {
namespace {

constexpr uint32_t kArp = 28;
constexpr uint64_t kArpOfIpv4 = 0x000108000604;  // hardware Ethernet, protocol IPv4, and the lengths of their addresses
constexpr uint32_t kMessage = 24;                // ICMPv6, up to the options
constexpr uint32_t kOption = 8;                  // with a MAC address
constexpr uint8_t kSourceOption = 1;
constexpr uint8_t kTargetOption = 2;
constexpr uint8_t kSolicited = 0x40;
constexpr uint8_t kOverride = 0x20;
constexpr uint8_t kHopLimit = 255;  // no router forwards this: it comes from this link
constexpr uint64_t kBroadcast = 0xffffffffffff;
constexpr IpAddress kNameless{.version = 6};
constexpr uint8_t kAllNodes[16] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

IpAddress address(uint8_t version, const uint8_t* bytes) {
  IpAddress found{.version = version};
  std::memcpy(found.bytes, bytes, ip_address_length(version));
  return found;
}

bool read_arp(const uint8_t* arp, uint32_t present, NeighbourMessage& message) {
  if (present < kArp || load_be48(arp) != kArpOfIpv4) return false;
  const uint16_t operation = load_be16(arp + 6);
  if (operation != 1 && operation != 2) return false;
  message = {.asks = operation == 1, .mac = load_be48(arp + 8), .sender = address(4, arp + 14), .target = address(4, arp + 24)};
  return true;
}

// Whether it is ff02::1:ff00:0/104 with the last three bytes of `target` (RFC 4291, 2.7.1).
bool is_solicited_node(const uint8_t* group, const uint8_t* target) {
  constexpr uint8_t kPrefix[13] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
  return std::memcmp(group, kPrefix, 13) == 0 && std::memcmp(group + 13, target + 13, 3) == 0;
}

bool read_icmp(const uint8_t* ip, uint32_t present, NeighbourMessage& message) {
  if (present < kIpv6Header + kMessage || ip[6] != kProtocolIcmpv6 || ip[7] != kHopLimit) return false;
  const uint32_t length = ip_total_length(ip) - kIpv6Header;
  if (length < kMessage || kIpv6Header + length > present) return false;
  const uint8_t* icmp = ip + kIpv6Header;
  const bool asks = icmp[0] == kNeighbourSolicitation;
  if ((!asks && icmp[0] != kNeighbourAdvertisement) || icmp[1] != 0 || icmp[8] == 0xff) return false;
  if (transport_checksum(ip, kProtocolIcmpv6, icmp, length) != 0) return false;
  uint64_t mac = 0;
  for (uint32_t at = kMessage; at < length;) {
    const uint32_t size = at + 1 < length ? icmp[at + 1] * 8u : 0;
    if (size == 0 || at + size > length) return false;
    if (size == kOption && icmp[at] == (asks ? kSourceOption : kTargetOption)) mac = load_be48(icmp + at + 2);
    at += size;
  }
  if (address(6, ip + 8) == kNameless && (!asks || mac != 0 || !is_solicited_node(ip + 24, icmp + 8))) return false;
  if (!asks && ip[24] == 0xff && (icmp[4] & kSolicited) != 0) return false;
  message = {.asks = asks,
             .mac = mac,
             .sender = address(6, asks ? ip + 8 : icmp + 8),
             .target = address(6, icmp + 8),
             .replaces = asks || (icmp[4] & kOverride) != 0};
  return true;
}

uint32_t build_arp(uint8_t* out, const LinkHeader& link, uint16_t operation, const IpAddress& own, uint64_t target_mac,
                   const IpAddress& target) {
  const uint32_t start = store_ethernet(out, link, kEthertypeArp);
  uint8_t* arp = out + start;
  store_be48(arp, kArpOfIpv4);
  store_be16(arp + 6, operation);
  store_be48(arp + 8, link.source_mac);
  std::memcpy(arp + 14, own.bytes, 4);
  store_be48(arp + 18, target_mac);
  std::memcpy(arp + 24, target.bytes, 4);
  std::memset(arp + kArp, 0, kMinimumFrame - kEthernetHeader - kArp);
  return start + kMinimumFrame - kEthernetHeader;
}

uint32_t build_icmp(uint8_t* out, const LinkHeader& link, const uint8_t* from, const uint8_t* to, uint8_t type, uint8_t flags,
                    const IpAddress& target) {
  const uint32_t start = store_ethernet(out, link, kEthertypeIpv6);
  uint8_t* ip = out + start;
  store_ipv6(ip, kProtocolIcmpv6, 0, kHopLimit, from, to);
  uint8_t* icmp = ip + kIpv6Header;
  std::memset(icmp, 0, kMessage);
  icmp[0] = type;
  icmp[4] = flags;
  std::memcpy(icmp + 8, target.bytes, 16);
  icmp[kMessage] = type == kNeighbourSolicitation ? kSourceOption : kTargetOption;
  icmp[kMessage + 1] = 1;
  store_be48(icmp + kMessage + 2, link.source_mac);
  ip_set_length(ip, kIpv6Header + kMessage + kOption);
  store_be16(icmp + 2, transport_checksum(ip, kProtocolIcmpv6, icmp, kMessage + kOption));
  return start + kIpv6Header + kMessage + kOption;
}

}  // namespace

bool read_neighbour_message(const uint8_t* frame, uint32_t present, const PacketMeta& meta, NeighbourMessage& message) {
  if (meta.ethertype == kEthertypeArp) {
    const uint32_t start = link_header_length(meta);
    return present > start && read_arp(frame + start, present - start, message);
  }
  if (meta.ip_version != 6 || meta.l3_offset == 0 || meta.l3_offset >= present) return false;
  return read_icmp(frame + meta.l3_offset, present - meta.l3_offset, message);
}

uint32_t build_neighbour_question(uint8_t* out, LinkHeader link, const IpAddress& own, const IpAddress& target) {
  if (own.version == 4) {
    if (link.destination_mac == 0) link.destination_mac = kBroadcast;
    return build_arp(out, link, 1, own, 0, target);
  }
  // ff02::1:ff00:0/104 and the last three bytes (RFC 4291, 2.7.1).
  uint8_t group[16] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, target.bytes[13], target.bytes[14], target.bytes[15]};
  if (link.destination_mac == 0) {
    link.destination_mac = 0x333300000000 | load_be32(group + 12);
  } else {
    std::memcpy(group, target.bytes, 16);
  }
  return build_icmp(out, link, own.bytes, group, kNeighbourSolicitation, 0, target);
}

uint64_t mac_of_asker(const NeighbourMessage& question, uint64_t source_mac) {
  // An IPv6 host that looks whether an address is taken has none: all are told.
  if (question.sender == kNameless) return 0x333300000001;
  const uint64_t mac = question.mac != 0 ? question.mac : source_mac;
  return is_group(mac) ? 0 : mac;
}

uint32_t build_neighbour_answer(uint8_t* out, const LinkHeader& link, const IpAddress& own, const IpAddress& asker) {
  if (own.version == 4) return build_arp(out, link, 2, own, link.destination_mac, asker);
  const bool nameless = asker == kNameless;
  return build_icmp(out, link, own.bytes, nameless ? kAllNodes : asker.bytes, kNeighbourAdvertisement,
                    nameless ? kOverride : kSolicited | kOverride, own);
}

}  // namespace weir
