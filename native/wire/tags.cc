#include "wire/tags.h"

#include <algorithm>
#include <cstring>

#include "wire/bytes.h"
#include "wire/ethernet.h"

namespace weir {

void shift_bytes(PacketPool& pool, PacketId id, uint32_t offset, int32_t by) {
  Packet& packet = pool[id];
  uint8_t* const at = pool.data(id) + offset;
  const uint32_t gap = static_cast<uint32_t>(by > 0 ? by : -by);
  const uint32_t room = pool.room(id);
  const uint32_t end = std::min(packet.length, room - std::min(room, by > 0 ? gap : 0));
  if (by > 0 && end > offset) std::memmove(at + gap, at, end - offset);
  if (by < 0 && end > offset + gap) std::memmove(at, at + gap, end - offset - gap);
  const auto move = [by](uint16_t& place) {
    if (place != 0) place = static_cast<uint16_t>(place + by);
  };
  packet.length = static_cast<uint32_t>(static_cast<int32_t>(packet.length) + by);
  move(packet.meta.l3_offset);
  move(packet.meta.bth_offset);
  move(packet.offload.checksum_start);
  move(packet.offload.header_length);
}

bool place_vlan_tag(PacketPool& pool, PacketId id, std::optional<uint16_t> tci) {
  Packet& packet = pool[id];
  if (tci && !packet.meta.tagged) {
    if (pool.has_payload() && packet.length + kVlanTag > pool.room(id)) return false;
    shift_bytes(pool, id, kTagsOffset, kVlanTag);
    if (kTagsOffset + kVlanTag <= pool.room(id)) store_be16(pool.data(id) + kTagsOffset, kEthertypeVlan);
  } else if (!tci && packet.meta.tagged) {
    shift_bytes(pool, id, kTagsOffset, -static_cast<int32_t>(kVlanTag));
  }
  packet.meta.tagged = tci.has_value();
  packet.meta.vlan_tci = tci.value_or(0);
  if (tci && kTagsOffset + kVlanTag <= pool.room(id)) store_be16(pool.data(id) + kTagsOffset + 2, *tci);
  return true;
}

}  // namespace weir
