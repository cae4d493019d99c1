// When a link finishes sending a frame, exactly: the sub-nanosecond remainder is carried between back-to-back frames.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace weir {

// 64 B at 400 Gb/s last 1.28 ns; rounding each frame to a nanosecond would misstate the link by 28%. Here a run of n
// back-to-back frames ends at the floor of the exact time, whatever n. 64-bit arithmetic only: exact for frames up to
// 1 GB and rates up to 9 Tb/s.
class Serializer {
 public:
  // Bit/s of wire bytes; 0: the link takes no time.
  explicit Serializer(Rate rate = 0) : rate_(rate) {}

  Rate rate() const { return rate_; }
  // The rate holds from the next frame on.
  void set_rate(Rate rate) {
    if (rate != rate_) remainder_ = 0;
    rate_ = rate;
  }
  // Time up to which the link is busy with the frames so far (INT64_MIN before the first).
  Time busy_until() const { return busy_until_; }

  // The frame is ready at `start`; returns when its last bit has left, in ns, rounded down. A start at or before
  // busy_until() queues behind it (back to back); a later one begins at `start` and drops the remainder.
  Time finish(Time start, uint32_t wire_bytes) {
    if (start > busy_until_) {
      busy_until_ = start;
      remainder_ = 0;
    }
    if (rate_ == 0) return busy_until_;
    const uint64_t rate = static_cast<uint64_t>(rate_);
    const uint64_t work = static_cast<uint64_t>(wire_bytes) * 8 * kSecond + remainder_;
    busy_until_ += static_cast<Time>(work / rate);
    remainder_ = work % rate;
    return busy_until_;
  }

 private:
  Rate rate_;
  Time busy_until_ = INT64_MIN;
  uint64_t remainder_ = 0;  // in units of 1/rate ns
};

}  // namespace weir
