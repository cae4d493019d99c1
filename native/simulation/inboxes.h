// Events that wait for devices, by slot and device: lists of short pieces, all out of one memory.
//
// Pieces that a device has emptied are the next to be filled, so that the pieces being written lie in the caches; lists that keep
// their memory would go through all slots before they come to it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir {

class Inboxes {
 public:
  Inboxes(uint32_t devices, size_t slots) : devices_(devices), boxes_(devices * slots) {}

  size_t size(size_t slot, uint32_t device) const { return box(slot, device).count; }

  void put(size_t slot, uint32_t device, uint64_t entry) {
    Box& box = boxes_[slot * devices_ + device];
    const uint32_t place = box.count++ % kEntries;
    if (place == 0) [[unlikely]]
      extend(box);
    pieces_[box.last].entries[place] = entry;
  }

  // Moves all there is to the end of `out`, in the order in which it was put there.
  void take(size_t slot, uint32_t device, std::vector<uint64_t>& out) {
    Box& box = boxes_[slot * devices_ + device];
    size_t at = out.size();
    out.resize(at + box.count);
    for (uint32_t piece = box.first; box.count > 0;) {
      Piece& from = pieces_[piece];
      const uint32_t next = from.next;
      const uint32_t count = box.count < kEntries ? box.count : kEntries;
      if (box.count > count) __builtin_prefetch(&pieces_[next]);
      for (uint32_t i = 0; i < count; ++i) out[at++] = from.entries[i];
      box.count -= count;
      from.next = free_;
      free_ = piece;
      piece = next;
    }
  }

  // Hints for the caches: a list that is soon to be taken, and then the first entries in it.
  void fetch(size_t slot, uint32_t device) const { __builtin_prefetch(&pieces_[box(slot, device).first]); }
  template <class Fetch>
  __attribute__((always_inline)) void fetch_first(size_t slot, uint32_t device, Fetch& fetch) const {
    const Box& own = box(slot, device);
    const uint32_t count = own.count < kEntries ? own.count : kEntries;
    for (uint32_t i = 0; i < count; ++i) fetch(pieces_[own.first].entries[i]);
  }

 private:
  static constexpr uint32_t kEntries = 15;
  // The link lies behind the last entry, which was written just before it.
  struct alignas(128) Piece {
    uint64_t entries[kEntries];
    uint32_t next;
  };
  struct Box {
    uint32_t first = 0;
    uint32_t last = 0;
    uint32_t count = 0;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  const Box& box(size_t slot, uint32_t device) const { return boxes_[slot * devices_ + device]; }

  void extend(Box& box) {
    uint32_t piece = free_;
    if (piece != kNone) {
      free_ = pieces_[piece].next;
    } else {
      piece = static_cast<uint32_t>(pieces_.size());
      pieces_.emplace_back();
    }
    if (box.count == 1) {
      box.first = piece;
    } else {
      pieces_[box.last].next = piece;
    }
    box.last = piece;
  }

  size_t devices_;
  std::vector<Box> boxes_;
  std::vector<Piece> pieces_;
  uint32_t free_ = kNone;
};

}  // namespace weir
