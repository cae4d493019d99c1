// A queue of bounded length, in memory that is allocated once.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace weir {

// Places do not move: what push() returns stays where it is until it has been popped.
template <class T>
class Ring {
 public:
  explicit Ring(uint32_t capacity = 0)
      : capacity_(capacity),
        slots_(capacity == 0 ? 0 : std::bit_ceil(capacity)),
        mask_(static_cast<uint32_t>(slots_.size()) - 1) {}

  uint32_t size() const { return tail_ - head_; }
  uint32_t room() const { return capacity_ - size(); }
  bool empty() const { return head_ == tail_; }
  bool full() const { return size() == capacity_; }
  // Places count from the oldest on.
  T& operator[](uint32_t place) { return slots_[(head_ + place) & mask_]; }
  const T& operator[](uint32_t place) const { return slots_[(head_ + place) & mask_]; }
  // The ring must not be empty for these. A popped item stays in its place until something is pushed.
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size() - 1]; }
  T& pop() { return slots_[head_++ & mask_]; }
  void pop_back() { --tail_; }
  // The ring must not be full.
  T& push(const T& item) { return slots_[tail_++ & mask_] = item; }
  void clear() { head_ = tail_; }
  // Drops the items that `keep` says no to; the rest stays in its order.
  template <class Keep>
  void filter(Keep keep) {
    for (uint32_t left = size(); left > 0; --left) {
      if (const T item = pop(); keep(item)) push(item);
    }
  }

 private:
  uint32_t capacity_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  std::vector<T> slots_;
  uint32_t mask_;
};

}  // namespace weir
