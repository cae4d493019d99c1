// Ethernet II and the 802.1Q tag (IEEE 802.3 clause 3, IEEE 802.1Q clause 9).
#pragma once

#include <cstdint>

#include "wire/bytes.h"

namespace weir {

inline constexpr uint32_t kEthernetHeader = 14;
inline constexpr uint32_t kVlanTag = 4;

inline constexpr uint16_t kEthertypeIpv4 = 0x0800;
inline constexpr uint16_t kEthertypeVlan = 0x8100;
inline constexpr uint16_t kEthertypeIpv6 = 0x86dd;
inline constexpr uint16_t kEthertypeMacControl = 0x8808;

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

}  // namespace weir
