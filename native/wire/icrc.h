// The invariant CRC of RoCEv2 (IBTA annex A17): CRC-32 over 64 bits of ones in place of the LRH, then everything from
// the IP header to the byte before the ICRC, with the fields that a router or switch may change read as ones: IPv4 type of
// service, TTL and header checksum; IPv6 traffic class, flow label and hop limit; the UDP checksum; BTH byte 4 (FECN, BECN).
// Least significant byte first on the wire. Frames are neither changed nor copied.
#pragma once

#include <cstdint>

#include "wire/crc32.h"
#include "wire/packet.h"

namespace weir {

// `icrc_offset`: where the ICRC starts, at or behind the end of the BTH. The IP header at `l3_offset` must be valid.
uint32_t compute_icrc(const uint8_t* frame, uint32_t l3_offset, uint32_t icrc_offset);

// classify() must have called the frame roce or cnp.
bool icrc_ok(const uint8_t* frame, const PacketMeta& meta);

// Writes four bytes at `icrc_offset`.
void write_icrc(uint8_t* frame, uint32_t l3_offset, uint32_t icrc_offset);

}  // namespace weir
