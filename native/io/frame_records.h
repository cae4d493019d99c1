// The frames of a capture as records with comments, for TypeScript.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "io/capture.h"
#include "io/frame_comment.h"

namespace weir {

// Fills `out`, in which the longest record has room, with whole FrameRecords of what waits; returns how many bytes. `rates`: of
// each tap. On the reading thread.
size_t drain_records(Capture& capture, std::span<const CommentRate> rates, std::span<uint8_t> out);

// A record of the longest frame with the longest comment.
inline constexpr size_t kLongestRecord = sizeof(FrameRecord) + kMaxPcapRecord + kLongestComment + 8;

}  // namespace weir
