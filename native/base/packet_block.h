// A frame as the enhanced packet block of a pcapng file (draft-ietf-opsawg-pcapng, section 4.3), little endian:
//   0 type 6   4 length   8 interface   12 time: upper, lower half   20 captured   24 original length   28 captured bytes,
//   padded; options, if any: flags with the direction, a comment, their end;   length again
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir {

// As seen from the device; the values are those of a block's flags.
enum class FrameDirection : uint8_t { unknown, inbound, outbound };

struct PacketBlock {
  static constexpr size_t kBytes = 28;   // where the captured bytes are
  static constexpr size_t kOthers = 56;  // most bytes besides those captured and those of the comment, padding included

  uint32_t interface = 0;  // number of it in the file
  uint64_t time = 0;       // ns
  uint32_t captured = 0;
  uint32_t original = 0;
  FrameDirection direction = FrameDirection::unknown;
  std::string_view comment = {};  // UTF-8, shorter than 64 KiB

  size_t length() const {
    const size_t flags = direction == FrameDirection::unknown ? 0 : kFlags;
    const size_t text = comment.empty() ? 0 : kOption + padded(comment.size());
    return kBytes + padded(captured) + flags + text + (flags + text > 0 ? kOption : 0) + sizeof(uint32_t);
  }

  // Completes the block at `out`, where the captured bytes are in place.
  void write(uint8_t* out) const {
    static_assert(std::endian::native == std::endian::little);
    const auto whole = static_cast<uint32_t>(length());
    const uint32_t head[] = {6,        whole,   interface, static_cast<uint32_t>(time >> 32), static_cast<uint32_t>(time),
                             captured, original};
    static_assert(sizeof head == kBytes);
    std::memcpy(out, head, sizeof head);
    uint8_t* at = out + kBytes + captured;
    std::memset(at, 0, whole - kBytes - captured);  // padding, the end of options
    at = out + kBytes + padded(captured);
    if (direction != FrameDirection::unknown) {
      const uint32_t option[] = {4u << 16 | 2, static_cast<uint32_t>(direction)};
      std::memcpy(at, option, sizeof option);
      at += kFlags;
    }
    if (!comment.empty()) {
      const uint32_t option = static_cast<uint32_t>(comment.size()) << 16 | 1;
      std::memcpy(at, &option, sizeof option);
      std::memcpy(at + kOption, comment.data(), comment.size());
    }
    std::memcpy(out + whole - sizeof whole, &whole, sizeof whole);
  }

 private:
  static constexpr size_t kOption = 4;  // code and length
  static constexpr size_t kFlags = 8;
  static constexpr size_t padded(size_t bytes) { return (bytes + 3) & ~size_t{3}; }
};

}  // namespace weir
