// What a captured frame says about congestion, in words: the comment beside it in a pcapng file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/types.h"
#include "io/capture.h"

namespace weir {

// The rate of the link by which pause quanta are told as times; 0: they are not.
struct CommentRate {
  Rate rate = 0;
  bool meant = false;  // of the network that a scenario means, and not of the link that stands for it
};

// No comment is longer.
inline constexpr size_t kLongestComment = 1024;

// ASCII, into `out`, which has kLongestComment bytes; empty if there is nothing to say. `bytes`: as captured, with their tag. Of
// a frame that was cut too short for it a comment tells less. Total: any bytes are safe.
std::string_view comment_on(const CapturedFrame& frame, std::span<const uint8_t> bytes, const CommentRate& rate,
                            std::span<char> out);

}  // namespace weir
