// In-band network telemetry (INT): what switches write into a packet on its way, for controls that go by it, and how the receiver
// sends it back (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, sections 3.1 and 4.1).
//
// The header is the last extension header, between those of the standard and the payload, of SENDs, RDMA WRITEs, READ responses
// and acknowledgements of a reliable connection whose opcode has kOpcodeTelemetry added. Switches write into all but the last,
// which bring back what was written on the other way; a READ response has come to the host that is to know its way. These opcodes
// are among those that the standard leaves to manufacturers (IBTA volume 1, table 38: 110xxxxx and 111xxxxx), so devices that do
// not know them drop such packets as unknown, and packets of others are what they were. The header has its 64 bytes from the
// start: no packet grows on its way.
//
//   byte  0       version 1 in the upper four bits, hops written below, 0 to 5
//         1       hops that found no room, at most 255
//         2, 3    0
//         4 ...   5 hops of 12 bytes, in the order of the path, those not written 0:
//                   time stamp     32 bits  ns of the switch's clock when the packet's first bit left
//                   bytes sent     32 bits  by the port up to then, with FCS, preamble and gap
//                   queue          16 bits  what the packet has left behind in its queue, in 64 bytes, rounded down;
//                                           65535: that or more
//                   link rate      16 bits  exponent 5 bits, mantissa 11: (2048 + mantissa) 2^exponent bit/s
//
// Time stamps and bytes wrap. HPCC's own header has 42 bytes: 8 for a hop, and 2. Its 4 bits for a rate name the rates of one
// vendor's links, and its 24 bits for the time end after 17 ms: links and clocks of a lab are slower by any factor. Here rates
// are those of the wire, to 1/4096, and a lab's clock and rates are both the wall's, so that time and rate still fit together.
//
// Switches write into it after the sender has made the ICRC. So the ICRC takes these 64 bytes as ones, like the fields of the IP
// header that change on the way (annex A17, 17.3.3), and INT is protected by the FCS of each link alone. A header that is not of
// this form is refused as a whole: a switch leaves it alone, a receiver makes nothing of it but takes the data.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/types.h"
#include "wire/bth.h"
#include "wire/bytes.h"

namespace weir {

inline constexpr uint32_t kMostHops = 5;

struct TelemetryHop {
  uint32_t time = 0;   // ns, wraps
  uint32_t sent = 0;   // bytes, wraps
  uint32_t queue = 0;  // bytes
  Rate rate = 0;       // bit/s
};

struct Telemetry {
  uint32_t hops = 0;        // written
  uint32_t overflowed = 0;  // hops that found no room
  std::array<TelemetryHop, kMostHops> hop;
};

constexpr uint16_t telemetry_rate(Rate rate) {
  constexpr uint64_t kLeast = 2048;
  uint64_t mantissa = std::clamp<uint64_t>(static_cast<uint64_t>(rate), kLeast, (2 * kLeast - 1) << 31);
  int exponent = std::bit_width(mantissa) - 12;
  if (exponent > 0) mantissa = (mantissa + (uint64_t{1} << (exponent - 1))) >> exponent;
  if (mantissa == 2 * kLeast) mantissa = kLeast, ++exponent;
  return static_cast<uint16_t>(exponent << 11 | static_cast<int>(mantissa - kLeast));
}
constexpr Rate telemetry_rate_of(uint16_t coded) { return Rate{2048 + (coded & 0x7ff)} << (coded >> 11); }

// Returns where the header is behind the BTH of a packet with such an opcode.
constexpr uint32_t telemetry_offset(uint8_t opcode) { return kBthHeader + extension_length(opcode) - kTelemetryHeader; }

// Writes the header as senders send it.
inline void store_telemetry(uint8_t* p) {
  std::memset(p, 0, kTelemetryHeader);
  p[0] = 0x10;
}
// Total: any kTelemetryHeader bytes.
constexpr bool telemetry_ok(const uint8_t* p) {
  return p[0] >> 4 == 1 && (p[0] & 15u) <= kMostHops && p[2] == 0 && p[3] == 0 && (p[1] == 0 || (p[0] & 15u) == kMostHops);
}

// Outcome for a hop.
enum class HopWritten : uint8_t { written, overflowed, malformed };
inline HopWritten write_hop(uint8_t* p, const TelemetryHop& hop) {
  if (!telemetry_ok(p)) return HopWritten::malformed;
  const uint32_t hops = p[0] & 15u;
  if (hops == kMostHops) {
    if (p[1] < 255) ++p[1];
    return HopWritten::overflowed;
  }
  uint8_t* const at = p + 4 + 12 * hops;
  store_be32(at, hop.time);
  store_be32(at + 4, hop.sent);
  store_be16(at + 8, static_cast<uint16_t>(std::min<uint32_t>(hop.queue / 64, UINT16_MAX)));
  store_be16(at + 10, telemetry_rate(hop.rate));
  ++p[0];
  return HopWritten::written;
}

// False: it is not of this form, and `telemetry` is as it was.
inline bool load_telemetry(const uint8_t* p, Telemetry& telemetry) {
  if (!telemetry_ok(p)) return false;
  telemetry.hops = p[0] & 15u;
  telemetry.overflowed = p[1];
  for (uint32_t i = 0; i < telemetry.hops; ++i) {
    const uint8_t* const at = p + 4 + 12 * i;
    telemetry.hop[i] = {load_be32(at), load_be32(at + 4), uint32_t{load_be16(at + 8)} * 64,
                        telemetry_rate_of(load_be16(at + 10))};
  }
  return true;
}

}  // namespace weir
