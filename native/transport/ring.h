// A queue of bounded length, in memory that is allocated once.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace weir {

template <class T>
class Ring {
 public:
  explicit Ring(uint32_t capacity = 0)
      : capacity_(capacity),
        slots_(capacity == 0 ? 0 : std::bit_ceil(capacity)),
        mask_(static_cast<uint32_t>(slots_.size()) - 1) {}

  uint32_t size() const { return tail_ - head_; }
  bool empty() const { return head_ == tail_; }
  bool full() const { return size() == capacity_; }
  // Counted from the oldest on.
  T& operator[](uint32_t place) { return slots_[(head_ + place) & mask_]; }
  const T& operator[](uint32_t place) const { return slots_[(head_ + place) & mask_]; }
  // These only when not empty.
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size() - 1]; }
  void pop() { ++head_; }
  void pop_back() { --tail_; }
  // Only when not full.
  void push(const T& item) { slots_[tail_++ & mask_] = item; }
  void clear() { head_ = tail_; }

 private:
  uint32_t capacity_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  std::vector<T> slots_;
  uint32_t mask_;
};

}  // namespace weir
