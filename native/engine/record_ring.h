// Samples and events on their way to TypeScript: fixed records in a ring with one writer (the worker) and one reader.
// When the ring is full a record is dropped and counted; the worker never waits.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/record.h"

namespace weir {

template <class T>
class SpscRing {
 public:
  explicit SpscRing(size_t capacity) : slots_(std::bit_ceil(capacity)), mask_(slots_.size() - 1) {}

  // Writer. False (and counted) when full.
  bool push(const T& item) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) > mask_) {
      overflow_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    slots_[tail & mask_] = item;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  // Reader.
  bool pop(T& item) {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    item = slots_[head & mask_];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }
  // Either end; may be out of date when it returns.
  bool empty() const { return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_acquire); }
  uint64_t overflow() const { return overflow_.load(std::memory_order_relaxed); }

 private:
  std::vector<T> slots_;
  size_t mask_;
  alignas(64) std::atomic<size_t> head_{0};
  alignas(64) std::atomic<size_t> tail_{0};
  std::atomic<uint64_t> overflow_{0};
};

}  // namespace weir
