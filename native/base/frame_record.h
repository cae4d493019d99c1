// A frame on its way to a pcapng file, as src/capture/frame_records.ts reads it: this header, `captured` bytes of the frame,
// `comment` bytes of text, and zeros up to a multiple of 8.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir {

// As seen from the device; the values are those of a pcapng block's flags.
enum class FrameDirection : uint8_t { unknown, inbound, outbound };

struct FrameRecord {
  uint32_t tap = 0;  // which of the places where frames are taken
  uint32_t captured = 0;
  uint32_t original = 0;  // bytes on the wire, no FCS
  uint16_t comment = 0;   // ASCII
  FrameDirection direction = FrameDirection::unknown;
  uint8_t reserved = 0;
  uint64_t time = 0;  // ns

  size_t bytes() const { return (sizeof(FrameRecord) + captured + comment + 7) & ~size_t{7}; }
};
static_assert(sizeof(FrameRecord) == 24);

}  // namespace weir
