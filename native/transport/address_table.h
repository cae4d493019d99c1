// Ways to receivers of datagrams, by address handle (IBTA volume 1, 11.2.2).
#pragma once

#include <cstdint>
#include <vector>

#include "wire/roce_builder.h"

namespace weir {

class AddressTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Handles at a time.
  static constexpr uint32_t kMost = 1u << 15;

  // The handle; kNone when there are kMost. One that is gone does not come back before its place has had 2^16 others.
  uint32_t add(const RocePath& path) {
    uint32_t index = static_cast<uint32_t>(slots_.size());
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else if (index == kMost) {
      return kNone;
    } else {
      slots_.emplace_back();
    }
    Slot& slot = slots_[index];
    slot.headers = RoceTemplate(path);
    slot.handle = static_cast<uint32_t>(slot.generation) << 16 | index;
    return slot.handle;
  }
  // False when there is no such handle.
  bool remove(uint32_t handle) {
    if (find(handle) == nullptr) return false;
    Slot& slot = slots_[handle & 0xffff];
    ++slot.generation;
    slot.handle = kNone;
    free_.push_back(handle & 0xffff);
    return true;
  }
  // Null when there is no such handle.
  const RoceTemplate* find(uint32_t handle) const {
    const uint32_t index = handle & 0xffff;
    return index < slots_.size() && slots_[index].handle == handle && handle != kNone ? &slots_[index].headers : nullptr;
  }

 private:
  struct Slot {
    uint32_t handle = kNone;
    uint16_t generation = 0;
    RoceTemplate headers{RocePath{}};
  };

  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace weir
