// A queue of bounded length, in a circle of places.
#pragma once

#include <bit>
#include <cstddef>
#include <vector>

namespace weir {

// Allocates in the constructor only. Places do not move: what push() returns stays where it is until it has been popped.
template <class T>
class Ring {
 public:
  // Room for `capacity` at least: it is a power of two.
  explicit Ring(size_t capacity = 1) : places_(std::bit_ceil(capacity)) {}

  size_t size() const { return end_ - first_; }
  size_t room() const { return places_.size() - size(); }
  bool empty() const { return end_ == first_; }
  // The oldest; only when not empty.
  T& front() { return places_[first_ & mask()]; }
  const T& front() const { return places_[first_ & mask()]; }
  // The newest; only when not empty.
  T& back() { return places_[(end_ - 1) & mask()]; }
  // Only where there is room.
  T& push(const T& item) { return places_[end_++ & mask()] = item; }
  // Only when not empty.
  T pop() { return places_[first_++ & mask()]; }
  void clear() { first_ = end_ = 0; }
  // What `keep` says no to is gone; the rest stays in its order.
  template <class Keep>
  void filter(Keep keep) {
    for (size_t left = size(); left > 0; --left) {
      if (const T item = pop(); keep(item)) push(item);
    }
  }

 private:
  size_t mask() const { return places_.size() - 1; }

  std::vector<T> places_;
  size_t first_ = 0;  // both count up for ever
  size_t end_ = 0;
};

}  // namespace weir
