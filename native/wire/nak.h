// What a responder says becomes a refusal: an acknowledgement, or a response that has an AETH, becomes a NAK of the same PSN, as
// if the responder had not been able to do what it was asked for.
#pragma once

#include <cstdint>

#include "wire/packet.h"

namespace weir {

// Whether a frame of so many bytes is a packet of the reliable connection that has an AETH, whole, without telemetry.
bool can_nak(const PacketMeta& meta, uint32_t length);
// Makes an ACKNOWLEDGE with this syndrome of a frame for which can_nak() holds, with lengths, checksums and ICRC of its own;
// `meta` and `length` follow. What was behind the AETH is gone. `data`: the bytes of it that there are (simulated frames have
// their headers).
void make_nak(uint8_t* data, uint32_t& length, PacketMeta& meta, uint8_t syndrome);

}  // namespace weir
