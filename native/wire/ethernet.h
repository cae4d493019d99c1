// Ethernet II, the 802.1Q tag (IEEE 802.3 clause 3, IEEE 802.1Q clause 9), and the CN-TAG (IEEE 802.1Q clause 33, wire/qcn.h).
#pragma once

#include <cstdint>
#include <optional>

#include "wire/bytes.h"

namespace weir {

inline constexpr uint32_t kEthernetHeader = 14;
inline constexpr uint32_t kVlanTag = 4;
inline constexpr uint32_t kCnTag = 4;

inline constexpr uint16_t kEthertypeIpv4 = 0x0800;
inline constexpr uint16_t kEthertypeArp = 0x0806;
inline constexpr uint16_t kEthertypeCnm = 0x22e7;
inline constexpr uint16_t kEthertypeCnTag = 0x22e9;
inline constexpr uint16_t kEthertypeVlan = 0x8100;
inline constexpr uint16_t kEthertypeIpv6 = 0x86dd;
inline constexpr uint16_t kEthertypeMacControl = 0x8808;
inline constexpr uint16_t kEthertypeLldp = 0x88cc;

// Multicast or broadcast (IEEE 802 clause 8.2.2).
inline bool is_group(uint64_t mac) { return (mac >> 40 & 1) != 0; }
// 01:80:C2:00:00:00..0F: stays on the link, no bridge forwards it (IEEE 802.1Q table 8-1).
inline bool is_link_local_group(uint64_t mac) { return (mac & ~0xfull) == 0x0180c2000000; }
// "Nearest Bridge", to whom LLDP with DCBX speaks (IEEE 802.1AB table 7-1, IEEE 802.1Q 38.4.1).
inline constexpr uint64_t kLldpAddress = 0x0180c200000e;
inline bool is_lldp(uint64_t destination_mac, uint16_t ethertype) {
  return ethertype == kEthertypeLldp && destination_mac == kLldpAddress;
}

// Header in front of a frame's ethertype.
struct LinkHeader {
  uint64_t destination_mac = 0;  // in the low 48 bits
  uint64_t source_mac = 0;
  bool tagged = false;
  uint16_t vlan_tci = 0;                 // when tagged
  std::optional<uint16_t> cn_flow = {};  // flow identifier of the CN-TAG (IEEE 802.1Q clause 33)
};

// Writes it and `ethertype`; returns their length: 14, and 4 for each tag.
inline uint32_t store_ethernet(uint8_t* out, const LinkHeader& header, uint16_t ethertype) {
  store_be48(out, header.destination_mac);
  store_be48(out + 6, header.source_mac);
  uint32_t offset = 12;
  if (header.tagged) {
    store_be16(out + offset, kEthertypeVlan);
    store_be16(out + offset + 2, header.vlan_tci);
    offset += kVlanTag;
  }
  if (header.cn_flow) {
    store_be16(out + offset, kEthertypeCnTag);
    store_be16(out + offset + 2, *header.cn_flow);
    offset += kCnTag;
  }
  store_be16(out + offset, ethertype);
  return offset + 2;
}

}  // namespace weir
