// Tags behind the MAC addresses of a packet: bytes that come or go, and all offsets with them.
#pragma once

#include <cstdint>
#include <optional>

#include "wire/ethernet.h"
#include "wire/packet_pool.h"

namespace weir {

inline constexpr uint32_t kTagsOffset = 12;  // tags stand behind the MAC addresses

// Length of what is in front of the IP packet: Ethernet header and tags.
inline uint32_t link_header_length(const PacketMeta& meta) {
  return kEthernetHeader + (meta.tagged ? kVlanTag : 0) + (meta.cn_tagged ? kCnTag : 0);
}

// Moves the bytes of a packet from `offset` on by `by` towards its end, or takes so many bytes out there (by < 0). If a packet
// has no payload, the bytes that exist move. There must be room().
void shift_bytes(PacketPool& pool, PacketId id, uint32_t offset, int32_t by);

// The packet gets this 802.1Q tag instead of its own, or none. False if there is no room for one: it stays as it is then.
bool place_vlan_tag(PacketPool& pool, PacketId id, std::optional<uint16_t> tci);

}  // namespace weir
