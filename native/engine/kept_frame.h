// A frame that was read, as a packet of the worker's: what devices do with frames that they do not only look at.
#pragma once

#include <cstring>

#include "io/packet_port.h"
#include "wire/bytes.h"
#include "wire/ethernet.h"
#include "wire/offload.h"
#include "wire/packet_pool.h"

namespace weir {

// Reason why it cannot be one.
enum class Unfit : uint8_t { none, runt, no_descriptor, offload };

struct KeptFrame {
  PacketId id = kNoPacket;
  Unfit why = Unfit::none;
};

// Copies a frame into `out`, with the tag that the kernel took out put back; returns its length.
inline uint32_t copy_frame(const RxFrame& frame, uint8_t* out) {
  if (!frame.vlan_stripped) {
    std::memmove(out, frame.data, frame.length);
    return frame.length;
  }
  std::memmove(out + 16, frame.data + 12, frame.length - 12);
  std::memmove(out, frame.data, 12);
  store_be16(out + 12, frame.vlan_tpid);
  store_be16(out + 14, frame.vlan_tci);
  return frame.length + kVlanTag;
}

// Keeps a frame with its tag, and an offload that check_offload() accepted; all else is as reset() leaves it.
inline KeptFrame keep_frame(const RxFrame& frame, PacketPool& pool) {
  if (frame.length < kEthernetHeader) return {kNoPacket, Unfit::runt};
  const bool ours = frame.packet != nullptr && (!frame.vlan_stripped || frame.length + kVlanTag <= pool.room());
  const PacketId id = ours ? take(frame) : pool.allocate(frame.length + kVlanTag);
  if (id == kNoPacket) return {kNoPacket, Unfit::no_descriptor};
  Packet& packet = pool[id];
  packet.reset();
  // A packet's bytes have their place; a tag that the XDP program put back reaches into what is in front of it.
  packet.length = frame.data == pool.data(id) && !frame.vlan_stripped ? frame.length : copy_frame(frame, pool.data(id));
  packet.offload = frame.offload;
  if (frame.vlan_stripped) packet.offload.checksum_start = static_cast<uint16_t>(packet.offload.checksum_start + kVlanTag);
  if (packet.offload.pending() && !check_offload(pool.data(id), packet.length, packet.offload)) {
    pool.free(id);
    return {kNoPacket, Unfit::offload};
  }
  return {id, Unfit::none};
}

}  // namespace weir
