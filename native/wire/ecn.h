// Writing the ECN field (RFC 3168) of a frame that is passing through.
#pragma once

#include <cstdint>

#include "wire/packet.h"

namespace weir {

// Puts meta.ecn into the IP header of a frame that classify() filled `meta` from, in place, with the IPv4 header checksum
// updated (RFC 1624). A frame whose IP part was refused or that has none stays as it is. The ICRC does not cover the field.
void write_ecn(uint8_t* frame, const PacketMeta& meta);

}  // namespace weir
