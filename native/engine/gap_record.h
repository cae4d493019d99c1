// The gaps between turns of a worker's loop, for who looks on from other threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "base/types.h"

namespace weir {

class GapRecord {
 public:
  // A gap of so many ns has ended. The worker's thread alone calls this.
  void note(Time now, uint64_t gap) {
    if (gap > worst()) worst_.store(gap, std::memory_order_relaxed);
    if (now - window_began_ >= kWindow) {
      of_last_window_ = std::exchange(of_window_, 0);
      window_began_ = now;
    } else if (gap <= of_window_) {
      return;
    }
    of_window_ = std::max(of_window_, gap);
    recent_.store(std::max(of_window_, of_last_window_), std::memory_order_relaxed);
  }
  // The longest so far, ns.
  uint64_t worst() const { return worst_.load(std::memory_order_relaxed); }
  // The longest of the last 10 to 20 s, as of the last turn.
  uint64_t recent() const { return recent_.load(std::memory_order_relaxed); }

 private:
  static constexpr Time kWindow = 10 * kSecond;

  std::atomic<uint64_t> worst_{0};
  std::atomic<uint64_t> recent_{0};
  uint64_t of_window_ = 0;
  uint64_t of_last_window_ = 0;
  Time window_began_ = 0;
};

}  // namespace weir
