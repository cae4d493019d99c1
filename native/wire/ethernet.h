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
inline constexpr uint16_t kEthertypeCnm = 0x22e7;
inline constexpr uint16_t kEthertypeCnTag = 0x22e9;
inline constexpr uint16_t kEthertypeVlan = 0x8100;
inline constexpr uint16_t kEthertypeIpv6 = 0x86dd;
inline constexpr uint16_t kEthertypeMacControl = 0x8808;

// Multicast or broadcast (IEEE 802 clause 8.2.2).
inline bool is_group(uint64_t mac) { return (mac >> 40 & 1) != 0; }
// 01:80:C2:00:00:00..0F: stays on the link, no bridge forwards it (IEEE 802.1Q table 8-1).
inline bool is_link_local_group(uint64_t mac) { return (mac & ~0xfull) == 0x0180c2000000; }

// Writes the header, with a tag if `tagged`; returns its length, 14 or 18. MAC addresses are in the low 48 bits.
inline uint32_t store_ethernet(uint8_t* out, uint64_t destination_mac, uint64_t source_mac, bool tagged, uint16_t vlan_tci,
                               uint16_t ethertype) {
  store_be48(out, destination_mac);
  store_be48(out + 6, source_mac);
  uint32_t offset = 12;
  if (tagged) {
    store_be16(out + 12, kEthertypeVlan);
    store_be16(out + 14, vlan_tci);
    offset += kVlanTag;
  }
  store_be16(out + offset, ethertype);
  return offset + 2;
}
// The same, with a CN-TAG of that flow behind the tag if there is one: at most 22 bytes.
inline uint32_t store_ethernet(uint8_t* out, uint64_t destination_mac, uint64_t source_mac, bool tagged, uint16_t vlan_tci,
                               std::optional<uint16_t> cn_flow, uint16_t ethertype) {
  const uint16_t first = cn_flow ? kEthertypeCnTag : ethertype;
  const uint32_t offset = store_ethernet(out, destination_mac, source_mac, tagged, vlan_tci, first);
  if (!cn_flow) return offset;
  store_be16(out + offset, *cn_flow);
  store_be16(out + offset + 2, ethertype);
  return offset + kCnTag;
}

}  // namespace weir
