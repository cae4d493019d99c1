// The frames of a capture as blocks of a pcapng file, with comments.
#pragma once

#include <cstdint>
#include <span>

#include "io/capture.h"
#include "io/frame_comment.h"

namespace weir {

// Room for a block of the longest frame with the longest comment.
inline constexpr size_t kLongestBlock = PacketBlock::kOthers + kMaxPcapRecord + kLongestComment;

// Fills `out`, of kLongestBlock bytes or more, with whole PacketBlocks of what waits, whose interfaces are the taps; returns how
// many bytes. `rates`: of each tap. On the reading thread.
size_t drain_blocks(Capture& capture, std::span<const CommentRate> rates, std::span<uint8_t> out);

}  // namespace weir
