// Lists of pieces of registered memory that stand for one piece each (scatter/gather lists): a region of memory whose addresses
// are in list after list. The lists are made once; their places are used again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

namespace weir {

// Has the form of ibv_sge. Nobody writes to a place before it is used: a queue may have room for many.
struct MemoryPiece {
  uint64_t address;
  uint32_t length;
  uint32_t key;
};

class PieceLists {
 public:
  // Room for `lists`, of up to `pieces` each. Throws std::bad_alloc.
  PieceLists(uint32_t lists, uint32_t pieces) : most_(pieces) { grow(lists); }

  // Lists that are there stay. Throws std::bad_alloc, and then nothing has changed.
  void grow(uint32_t lists) {
    if (lists <= count_) return;
    std::unique_ptr<MemoryPiece[]> pieces(new MemoryPiece[uint64_t{lists} * most_]);
    std::unique_ptr<uint32_t[]> counts(new uint32_t[lists]());
    for (uint32_t place = 0; place < count_; ++place) {
      counts[place] = counts_[place];
      std::copy_n(pieces_.get() + uint64_t{place} * most_, counts_[place], pieces.get() + uint64_t{place} * most_);
    }
    pieces_.swap(pieces);
    counts_.swap(counts);
    count_ = lists;
  }
  // Returns the address in the region at which list `place` begins.
  static uint64_t address_of(uint32_t place) { return uint64_t{place} << 32; }
  // The list that `address` is in.
  std::span<const MemoryPiece> at(uint64_t address) const {
    const uint64_t place = address >> 32;
    if (place >= count_) return {};
    return {pieces_.get() + place * most_, counts_[place]};
  }
  // Room for the `count` pieces of a list, which is not more than that.
  MemoryPiece* set(uint32_t place, uint32_t count) {
    counts_[place] = count;
    return pieces_.get() + uint64_t{place} * most_;
  }

 private:
  uint32_t most_;
  uint32_t count_ = 0;
  std::unique_ptr<MemoryPiece[]> pieces_;
  std::unique_ptr<uint32_t[]> counts_;
};

}  // namespace weir
