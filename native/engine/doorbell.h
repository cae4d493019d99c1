// Tells an application, in its own way, that something has come for it.
#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include "base/types.h"

namespace weir {

class Doorbell {
 public:
  // `ring` is called on the worker's thread: at most every 20 ms while records may wait, once when punted frames or completions
  // have come until rearm() is called, and when the loop has ended.
  void set(std::function<void()> ring) { ring_ = std::move(ring); }
  // Must precede the reading of punted frames or completions: those that come from now on ring again.
  void rearm() { announced_.store(false, std::memory_order_seq_cst); }

  // Rings, but only once until it is rearmed, if anything waits.
  template <class Waits>
  void announce(Waits anything_waits) {
    if (!ring_) return;
    if (announced_.load(std::memory_order_seq_cst)) {
      // Asked again behind a fence: else rearm() might come in between what was pushed and this, and see neither.
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (announced_.load(std::memory_order_seq_cst)) return;
    }
    if (!anything_waits()) return;
    announced_.store(true, std::memory_order_seq_cst);
    ring_();
  }
  // Records may wait.
  void ring_seldom(Time now) {
    if (now - rung_ < kInterval) return;
    rung_ = now;
    ring();
  }
  void ring() {
    if (ring_) ring_();
  }

 private:
  static constexpr Time kInterval = 20 * kMillisecond;

  std::function<void()> ring_;
  Time rung_ = 0;
  std::atomic<bool> announced_{false};  // it rang for what waits now
};

}  // namespace weir
