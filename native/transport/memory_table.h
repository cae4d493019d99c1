// Registered memory of a NIC: keys, bounds and rights. Every access of a packet to memory goes through find().
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weir {

// Rights, numbered as in ibv_access_flags; the last is ours: whether a peer's SEND with invalidate may take the key away.
inline constexpr uint8_t kLocalWrite = 1 << 0;
inline constexpr uint8_t kRemoteWrite = 1 << 1;
inline constexpr uint8_t kRemoteRead = 1 << 2;
inline constexpr uint8_t kRemoteAtomic = 1 << 3;
inline constexpr uint8_t kRemoteInvalidate = 1 << 4;

struct MemoryRegion {
  uint8_t* data = nullptr;
  uint64_t address = 0;  // of data[0], in work requests and RETHs
  uint64_t length = 0;
  uint32_t domain = 0;  // protection domain
  uint8_t access = 0;
  std::shared_ptr<void> owner;  // of data, for as long as the region is registered
  // Stands for no memory of its own: each address is that of data[0]. Behind it there is room for any packet's payload.
  bool scratch = false;
};

class MemoryTable {
 public:
  // Room for `capacity` regions, up to 2^24 - 1.
  explicit MemoryTable(uint32_t capacity) : slots_(capacity) {
    for (uint32_t i = capacity; i > 0; --i) free_.push_back(i - 1);
  }

  // The region's key, both local and remote; 0 when the table is full. Keys of regions that are gone come back late: only
  // after the 255 others of their slot.
  uint32_t add(MemoryRegion region) {
    if (free_.empty()) return 0;
    const uint32_t index = free_.back();
    free_.pop_back();
    Slot& slot = slots_[index];
    slot.generation = static_cast<uint8_t>(slot.generation + 1);
    slot.region = std::move(region);
    slot.key = (index + 1) << 8 | slot.generation;
    slot.valid = true;
    return slot.key;
  }
  // False when there is no such region.
  bool remove(uint32_t key) {
    Slot* slot = find_slot(key);
    if (slot == nullptr) return false;
    slot->valid = false;
    slot->key = 0;
    slot->region = {};
    free_.push_back(static_cast<uint32_t>(slot - slots_.data()));
    return true;
  }
  // Takes remote and local access away; the region stays registered until it is removed. False when its rights forbid it.
  bool invalidate(uint32_t key, uint32_t domain) {
    Slot* slot = find_slot(key);
    if (slot == nullptr || !slot->valid || slot->region.domain != domain) return false;
    if ((slot->region.access & kRemoteInvalidate) == 0) return false;
    slot->valid = false;
    return true;
  }
  // Where `address` is, if all `length` > 0 bytes from there lie in the region of this key and domain with all the rights in
  // `access`; else null. In a scratch region at most 4096 of those bytes are there.
  uint8_t* find(uint32_t key, uint32_t domain, uint64_t address, uint64_t length, uint8_t access) const {
    const Slot* slot = const_cast<MemoryTable*>(this)->find_slot(key);
    if (slot == nullptr || !slot->valid) return nullptr;
    const MemoryRegion& region = slot->region;
    if (region.domain != domain || (region.access & access) != access) return nullptr;
    const uint64_t offset = address - region.address;
    if (address < region.address || offset > region.length || length > region.length - offset) return nullptr;
    return region.scratch ? region.data : region.data + offset;
  }

 private:
  struct Slot {
    MemoryRegion region;
    uint32_t key = 0;
    uint8_t generation = 0;
    bool valid = false;
  };
  Slot* find_slot(uint32_t key) {
    const uint32_t index = (key >> 8) - 1;
    if (index >= slots_.size() || slots_[index].key != key) return nullptr;
    return &slots_[index];
  }

  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace weir
