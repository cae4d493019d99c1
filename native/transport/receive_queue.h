// Receive work requests in order.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "transport/work.h"

namespace weir {

class ReceiveQueue {
 public:
  explicit ReceiveQueue(uint32_t depth) : depth_(depth), works_(std::bit_ceil(depth)) {}

  bool full() const { return size() == depth_; }
  bool empty() const { return head_ == tail_; }
  uint32_t size() const { return static_cast<uint32_t>(tail_ - head_); }
  // Only when not full.
  void push(const ReceiveWork& work) { works_[tail_++ & (works_.size() - 1)] = work; }
  // Only when not empty.
  const ReceiveWork& front() const { return works_[head_ & (works_.size() - 1)]; }
  void pop() { ++head_; }

 private:
  uint32_t depth_;
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
  std::vector<ReceiveWork> works_;
};

}  // namespace weir
