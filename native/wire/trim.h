// Packet trimming: what is left of a frame that a switch has no room for, to tell its receiver which one it was.
#pragma once

#include <cstdint>

#include "wire/packet.h"

namespace weir {

// With this, all headers of a RoCEv2 packet stay, whatever they are, and the rest is a frame: Ethernet and tags 22, IPv6 40, UDP
// 8, BTH 12, extension headers 28, pad and ICRC 7.
inline constexpr uint32_t kLeastTrimSize = 128;
inline constexpr uint32_t kMostTrimSize = 4096;

// Whether there is something to cut behind the headers, and an IP header to say so: IPv4 or IPv6, unicast, longer than `size`.
bool can_trim(const PacketMeta& meta, uint32_t length, uint32_t size);
inline bool can_trim(const Packet& packet, uint32_t size) { return can_trim(packet.meta, packet.length, size); }
// Cuts the frame, which can be trimmed and has no offload pending, to `size` bytes, and sets its DSCP. Its descriptor is what
// classify() would make of it. `data`: the bytes of it that there are (simulated frames have their headers).
//
// The IP and UDP headers state the new length, with the IPv4 header's checksum, so that every hop takes it for a frame. Nothing
// else is made right again: UDP and TCP checksum and ICRC are those of the whole packet, or cut off, so that a receiver that
// knows nothing of trimming does not take what is left for a packet.
void trim(uint8_t* data, Packet& packet, uint32_t size, uint8_t dscp);

}  // namespace weir
