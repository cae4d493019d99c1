// A packet's bytes on the wire: a super-frame counts as the frames that it will be cut to, each with its own headers.
#pragma once

#include <cstdint>

#include "wire/ethernet.h"
#include "wire/packet.h"
#include "wire/segmentation.h"

namespace weir {

inline uint32_t carried_frames(const Packet& packet) {
  return packet.offload.gso == Gso::none ? 1 : segment_count(packet.length, packet.offload);
}
// The bytes are without FCS.
inline uint32_t carried_bytes(const Packet& packet) {
  return packet.length + (carried_frames(packet) - 1) * packet.offload.header_length;
}
// The bytes are those of wire_bytes().
inline uint32_t carried_wire_bytes(uint32_t length, const Offload& offload) {
  if (offload.gso == Gso::none) return wire_bytes(length);
  const uint32_t before = segment_count(length, offload) - 1;
  const uint32_t last = length - before * offload.segment_size;
  return before * wire_bytes(uint32_t{offload.header_length} + offload.segment_size) + wire_bytes(last);
}

}  // namespace weir
