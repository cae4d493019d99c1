// The responder's view of a stream of PSNs without retransmission: what came in order, what is missing, what is old.
#pragma once

#include <cstdint>

#include "transport/psn.h"

namespace weir {

class SequenceCheck {
 public:
  struct Verdict {
    bool duplicate;    // older than expected: seen before, or given up as lost
    uint32_t missing;  // packets skipped just before this one
  };

  explicit SequenceCheck(uint32_t first_psn) : expected_(first_psn & kPsnMask) {}

  // 24-bit serial arithmetic: up to 2^23 ahead is a gap, the rest is the past (IBTA volume 1, 9.7.1).
  Verdict observe(uint32_t psn) {
    const int32_t ahead = psn_distance(psn, expected_);
    if (ahead < 0) return {true, 0};
    expected_ = psn_add(psn, 1);
    return {false, static_cast<uint32_t>(ahead)};
  }
  uint32_t expected() const { return expected_; }

 private:
  uint32_t expected_;
};

}  // namespace weir
