// Whole frames between the poll thread and TypeScript: punted frames up, frames to inject down. Fixed slots, one writer,
// one reader; a frame that finds the ring full, or is longer than a slot, is refused and counted.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "engine/record_ring.h"

namespace weir {

struct PuntedFrame {
  static constexpr uint32_t kMaxLength = 2'048;
  uint16_t device = 0;
  uint16_t port = 0;
  uint32_t length = 0;
  Time at = 0;
  uint8_t bytes[kMaxLength];
};

class FrameRing {
 public:
  explicit FrameRing(size_t capacity) : ring_(capacity) {}

  bool push(uint16_t device, uint16_t port, Time at, std::span<const uint8_t> bytes) {
    if (bytes.size() > PuntedFrame::kMaxLength) {
      too_long_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    scratch_.device = device;
    scratch_.port = port;
    scratch_.at = at;
    scratch_.length = static_cast<uint32_t>(bytes.size());
    std::memcpy(scratch_.bytes, bytes.data(), bytes.size());
    return ring_.push(scratch_);
  }
  bool pop(PuntedFrame& frame) { return ring_.pop(frame); }
  bool empty() const { return ring_.empty(); }
  uint64_t refused() const { return ring_.overflow() + too_long_.load(std::memory_order_relaxed); }

 private:
  SpscRing<PuntedFrame> ring_;
  PuntedFrame scratch_;  // the writer's
  std::atomic<uint64_t> too_long_{0};
};

}  // namespace weir
