// A binary min-heap over the indexes 0..n-1, each held at most once, whose keys can be changed in place. They are times: of
// egress ports, say, their next departure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace weir {

// Equal keys come out by ascending index, so the order never depends on history. set, remove and pop are O(log n); the rest O(1).
// Allocates in the constructor only.
class IndexedHeap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Holds indexes below `size`.
  explicit IndexedHeap(uint32_t size) : positions_(size, kNone) { heap_.reserve(size); }

  bool empty() const { return heap_.empty(); }
  uint32_t size() const { return static_cast<uint32_t>(heap_.size()); }
  bool contains(uint32_t index) const { return positions_[index] != kNone; }
  // The heap must contain the index.
  Time key(uint32_t index) const { return heap_[positions_[index]].key; }
  // The index with the smallest key, or kNone when empty.
  uint32_t top() const { return heap_.empty() ? kNone : heap_[0].index; }
  // The heap must not be empty.
  Time top_key() const { return heap_[0].key; }

  // Inserts `index`, or changes its key.
  void set(uint32_t index, Time key) {
    uint32_t position = positions_[index];
    if (position == kNone) {
      position = size();
      heap_.push_back({key, index});
    }
    settle(position, {key, index});
  }

  // Nothing happens when `index` is not there.
  void remove(uint32_t index) {
    const uint32_t position = positions_[index];
    if (position == kNone) return;
    positions_[index] = kNone;
    const Node last = heap_.back();
    heap_.pop_back();
    if (last.index != index) settle(position, last);
  }

  // Removes and returns top(); kNone when empty.
  uint32_t pop() {
    const uint32_t index = top();
    if (index != kNone) remove(index);
    return index;
  }

 private:
  struct Node {
    Time key;
    uint32_t index;
  };
  static bool before(const Node& a, const Node& b) { return a.key != b.key ? a.key < b.key : a.index < b.index; }
  void place(uint32_t position, const Node& node) {
    heap_[position] = node;
    positions_[node.index] = position;
  }
  // Puts `node` where it belongs, starting from the hole at `position`.
  void settle(uint32_t position, const Node node) {
    while (position > 0 && before(node, heap_[(position - 1) / 2])) {
      place(position, heap_[(position - 1) / 2]);
      position = (position - 1) / 2;
    }
    for (uint32_t child = 2 * position + 1; child < size(); child = 2 * position + 1) {
      if (child + 1 < size() && before(heap_[child + 1], heap_[child])) ++child;
      if (!before(heap_[child], node)) break;
      place(position, heap_[child]);
      position = child;
    }
    place(position, node);
  }

  std::vector<uint32_t> positions_;
  std::vector<Node> heap_;
};

}  // namespace weir
