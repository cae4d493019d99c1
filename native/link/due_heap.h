// A heap of entries that are due, in the order of (time, order of scheduling), from which any may be taken out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/types.h"

namespace weir {

// Whoever holds it knows of each entry where it is: `placed(entry, position)` says so whenever that changes. Allocates in the
// constructor only.
class DueHeap {
 public:
  struct Due {
    Time at;
    uint64_t sequence;
    uint32_t entry;
    bool operator<(const Due& other) const { return at != other.at ? at < other.at : sequence < other.sequence; }
  };

  // So many at a time.
  explicit DueHeap(uint32_t entries) : due_(std::make_unique_for_overwrite<Due[]>(entries)) {}

  bool empty() const { return count_ == 0; }
  const Due& front() const { return due_[0]; }
  template <class Placed>
  void push(const Due& due, Placed placed) {
    raise(count_++, due, placed);
  }
  // The last one fills the hole, which goes down to a leaf first: the last one mostly belongs there. It is called: who asks
  // whether anything is due mostly hears that nothing is, and ought to hear it at once.
  template <class Placed>
  __attribute__((noinline)) void remove(size_t position, Placed placed) {
    const size_t size = --count_;
    const Due last = due_[size];
    if (position >= size) return;
    for (size_t child = 2 * position + 2; child <= size; child = 2 * position + 2) {
      if (child == size || due_[child - 1] < due_[child]) --child;
      place(position, due_[child], placed);
      position = child;
    }
    raise(position, last, placed);
  }

 private:
  template <class Placed>
  void place(size_t position, const Due& due, Placed& placed) {
    due_[position] = due;
    placed(due.entry, static_cast<uint32_t>(position));
  }
  // Puts `due` where it belongs, starting from the hole at `position`: that it belongs above.
  template <class Placed>
  void raise(size_t position, const Due due, Placed& placed) {
    for (; position > 0 && due < due_[(position - 1) / 2]; position = (position - 1) / 2) {
      place(position, due_[(position - 1) / 2], placed);
    }
    place(position, due, placed);
  }

  std::unique_ptr<Due[]> due_;
  size_t count_ = 0;
};

}  // namespace weir
