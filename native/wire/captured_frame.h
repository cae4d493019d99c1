// A frame that was captured, on the wire or in a simulation, as it is handed to TypeScript: this record, the captured bytes
// behind it, and zeros up to a multiple of 8 bytes (src/device/capture/frames.ts reads them).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "wire/classify.h"

namespace weir {

// Direction as seen from the device; the values are those of a pcapng block's flags.
enum class FrameDirection : uint8_t { unknown, inbound, outbound };

struct CapturedFrame {
  Time stamp = 0;  // not negative; on the wire CLOCK_REALTIME
  uint32_t tap = 0;
  uint32_t captured = 0;
  uint32_t original = 0;
  // These fields are the whole frame's, as classify() sees it.
  uint32_t destination_qp = 0;
  FrameKind kind = FrameKind::other;
  Refusal refusal = Refusal::none;
  uint8_t ecn = 0;
  bool is_ip = false;
  // Work that the sender left to the interface.
  bool needs_checksum = false;
  FrameDirection direction = FrameDirection::unknown;
  uint16_t segment_size = 0;  // payload of a super-frame's segments

  // Length of the whole record.
  size_t length() const { return sizeof(CapturedFrame) + (size_t{captured} + 7) / 8 * 8; }
};
static_assert(sizeof(CapturedFrame) == 32 && offsetof(CapturedFrame, kind) == 24 && offsetof(CapturedFrame, segment_size) == 30);
static_assert(std::endian::native == std::endian::little);

// The longest frame that libpcap writes or reads.
inline constexpr uint32_t kLongestCapture = 262'144;

}  // namespace weir
