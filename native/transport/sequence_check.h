// The responder's view of a stream of PSNs without retransmission: what came in order, what is missing, what is old.
#pragma once

#include <cstdint>

namespace weir {

class SequenceCheck {
 public:
  struct Verdict {
    bool duplicate;    // older than expected: seen before, or given up as lost
    uint32_t missing;  // packets skipped just before this one
  };

  explicit SequenceCheck(uint32_t first_psn) : expected_(first_psn & kMask) {}

  // 24-bit serial arithmetic: up to 2^23 ahead is a gap, the rest is the past (IBTA volume 1, 9.7.1).
  Verdict observe(uint32_t psn) {
    const uint32_t ahead = (psn - expected_) & kMask;
    if (ahead >= kHalf) return {true, 0};
    expected_ = (psn + 1) & kMask;
    return {false, ahead};
  }
  uint32_t expected() const { return expected_; }

 private:
  static constexpr uint32_t kMask = 0xff'ffff;
  static constexpr uint32_t kHalf = 1u << 23;
  uint32_t expected_;
};

}  // namespace weir
