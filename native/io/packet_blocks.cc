#include "io/packet_blocks.h"

#include <algorithm>
#include <array>

namespace weir {

size_t drain_blocks(Capture& capture, std::span<const CommentRate> rates, std::span<uint8_t> out) {
  size_t size = 0;
  std::array<char, kLongestComment> text;
  Capture::Waiting waiting;
  while (capture.peek(waiting)) {
    const CapturedFrame& frame = waiting.frame;
    if (out.size() - size < PacketBlock::kOthers + frame.captured + kLongestComment) break;
    uint8_t* const begin = out.data() + size;
    uint8_t* end = begin + PacketBlock::kBytes;
    for (const std::span<const uint8_t> piece : waiting.bytes) end = std::copy(piece.begin(), piece.end(), end);
    const PacketBlock block{
        .interface = frame.tap,
        .time = static_cast<uint64_t>(std::max<Time>(frame.stamp, 0)),
        .captured = frame.captured,
        .original = frame.original,
        .direction = frame.direction,
        .comment = comment_on(frame, {begin + PacketBlock::kBytes, frame.captured}, rates[frame.tap], text),
    };
    block.write(begin);
    size += block.length();
    capture.take(waiting);
  }
  return size;
}

}  // namespace weir
