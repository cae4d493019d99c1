#include "io/frame_records.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace weir {

size_t drain_records(Capture& capture, std::span<const CommentRate> rates, std::span<uint8_t> out) {
  size_t size = 0;
  Capture::Waiting waiting;
  while (capture.peek(waiting)) {
    const CapturedFrame& frame = waiting.frame;
    if (out.size() - size < sizeof(FrameRecord) + frame.captured + kLongestComment + 8) break;
    uint8_t* const bytes = out.data() + size + sizeof(FrameRecord);
    uint8_t* end = bytes;
    for (const std::span<const uint8_t> piece : waiting.bytes) end = std::copy(piece.begin(), piece.end(), end);
    const std::span<char> room(reinterpret_cast<char*>(end), kLongestComment);
    const auto comment = comment_on(frame, std::span(bytes, frame.captured), rates[frame.tap], room);
    const FrameRecord record{.tap = frame.tap,
                             .captured = frame.captured,
                             .original = frame.original,
                             .comment = static_cast<uint16_t>(comment.size()),
                             .direction = frame.direction,
                             .time = static_cast<uint64_t>(std::max<Time>(frame.stamp, 0))};
    std::memcpy(out.data() + size, &record, sizeof record);
    const size_t unpadded = sizeof record + record.captured + record.comment;
    std::fill_n(out.data() + size + unpadded, record.bytes() - unpadded, uint8_t{0});
    size += record.bytes();
    capture.take(waiting);
  }
  return size;
}

}  // namespace weir
