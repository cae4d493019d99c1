// Registered memory of a NIC: keys, bounds and rights. Every access of a packet to memory goes through find().
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "transport/piece_lists.h"

namespace weir {

// Rights, numbered as in ibv_access_flags; the last is ours: whether a peer's SEND with invalidate may take the key away.
inline constexpr uint8_t kLocalWrite = 1 << 0;
inline constexpr uint8_t kRemoteWrite = 1 << 1;
inline constexpr uint8_t kRemoteRead = 1 << 2;
inline constexpr uint8_t kRemoteAtomic = 1 << 3;
inline constexpr uint8_t kRemoteInvalidate = 1 << 4;

struct MemoryRegion {
  uint8_t* data = nullptr;
  uint64_t address = 0;  // address of data[0], in work requests and RETHs
  uint64_t length = 0;
  uint32_t domain = 0;  // protection domain
  uint8_t access = 0;
  std::shared_ptr<void> owner;  // keeps data for as long as the region is registered
  // True for a region without memory of its own: each address is that of data[0], behind which any packet's payload has room.
  bool scratch = false;
  uint8_t* sink = nullptr;            // with scratch: writes go here instead
  uint32_t qpn = 0;                   // of a memory window: the queue pair whose peer alone may use it; 0: any of the domain
  const PieceLists* lists = nullptr;  // its memory is that of pieces of other regions: for read(), write() and allows() alone
};

// Gives keys in an order that depends on a secret: all 32-bit numbers but 0, each once before any comes again. Earlier keys do
// not show the next one (a Feistel network of eight rounds over a counter). The same secret gives the same keys.
class KeySequence {
 public:
  explicit KeySequence(uint64_t secret) : secret_(secret) {}

  uint32_t next() {
    uint32_t key = 0;
    while (key == 0) key = permuted(counter_++);
    return key;
  }

 private:
  uint32_t permuted(uint32_t value) const {
    uint32_t left = value >> 16;
    uint32_t right = value & 0xffff;
    for (uint32_t round = 0; round < 8; ++round) {
      left ^= static_cast<uint32_t>(Random(secret_, right, round).next() >> 48);
      std::swap(left, right);
    }
    return left << 16 | right;
  }

  uint64_t secret_;
  uint32_t counter_ = 0;
};

class MemoryTable {
 public:
  // Room for `capacity` regions, up to 2^24 - 1. Programs that must not guess keys must not know `secret`.
  // `probe` says whether memory is there, of which others than the table dispose, and may be written to; it is asked for each
  // access.
  using Probe = bool (*)(const uint8_t* first, uint64_t bytes, bool to_write);
  explicit MemoryTable(uint32_t capacity, uint64_t secret = 0, Probe probe = nullptr)
      : keys_(secret), probe_(probe), slots_(capacity), heads_(std::bit_ceil(capacity), kNone) {
    for (uint32_t i = capacity; i > 0; --i) free_.push_back(i - 1);
  }

  // The region's key, both local and remote; 0 when the table is full. A key that is gone does not come back before 2^32 - 2
  // others.
  uint32_t add(MemoryRegion region) {
    if (free_.empty()) return 0;
    if (region.lists != nullptr && gathered_ == nullptr) gathered_ = std::make_unique<uint8_t[]>(kMostGathered);
    const uint32_t index = free_.back();
    free_.pop_back();
    Slot& slot = slots_[index];
    do {
      slot.key = keys_.next();
    } while (find_slot(slot.key) != nullptr);
    slot.region = std::move(region);
    slot.valid = true;
    slot.next = std::exchange(head_of(slot.key), index);
    return slot.key;
  }
  // False when there is no such region.
  bool remove(uint32_t key) {
    const uint32_t index = unlink(key);
    if (index == kNone) return false;
    slots_[index] = {};
    free_.push_back(index);
    return true;
  }
  // Its key stands for another region from now on. False when there is no such key.
  bool replace(uint32_t key, MemoryRegion region) {
    Slot* slot = const_cast<Slot*>(find_slot(key));
    if (slot == nullptr) return false;
    slot->region = std::move(region);
    slot->valid = true;
    return true;
  }
  // The region of `key` has the key `to` from now on. False when there is no such key, or `to` stands for another.
  bool rename(uint32_t key, uint32_t to) {
    if (to == 0 || find_slot(to) != nullptr) return false;
    const uint32_t index = unlink(key);
    if (index == kNone) return false;
    slots_[index].key = to;
    slots_[index].next = std::exchange(head_of(to), index);
    return true;
  }
  // Takes remote and local access away; the region stays registered until it is removed. False when its rights forbid it.
  bool invalidate(uint32_t key, uint32_t domain) {
    Slot* slot = const_cast<Slot*>(find_slot(key));
    if (slot == nullptr || !slot->valid || slot->region.domain != domain) return false;
    if ((slot->region.access & kRemoteInvalidate) == 0) return false;
    slot->valid = false;
    return true;
  }
  // Returns the place of `address`, if all `length` > 0 bytes from there lie in the region of this key and domain with all the
  // rights in `access`; else null. In a scratch region at most 4096 of those bytes are there.
  // `qpn`: number of the queue pair that the access comes by.
  uint8_t* find(uint32_t key, uint32_t domain, uint64_t address, uint64_t length, uint8_t access, uint32_t qpn = 0) const {
    return find(slot_again(key), domain, address, length, access, qpn);
  }

  // The functions below are for the memory of one's own work requests, in one piece or a list of pieces.
  // Whether find() would find all of it.
  bool allows(uint32_t key, uint32_t domain, uint64_t address, uint64_t length, uint8_t access) const {
    const Slot* slot = slot_again(key);
    if (slot == nullptr || slot->region.lists == nullptr) return find(slot, domain, address, length, access) != nullptr;
    return each_part(slot->region, domain, address, length, access, [](uint8_t*, uint32_t) {});
  }
  // The payload of a packet, length <= 4096: where it is, or else a copy, which is there until the next. Null as with find().
  const uint8_t* read(uint32_t key, uint32_t domain, uint64_t address, uint32_t length) const {
    const Slot* slot = slot_again(key);
    if (slot == nullptr || slot->region.lists == nullptr) return find(slot, domain, address, length, 0);
    if (length > kMostGathered) return nullptr;
    uint8_t* to = gathered_.get();
    const bool all = each_part(slot->region, domain, address, length, 0, [&](const uint8_t* from, uint32_t part) {
      std::memcpy(to, from, part);
      to += part;
    });
    return all ? gathered_.get() : nullptr;
  }
  // The payload of a packet comes there; `from` null: nothing but the check. False as where find() is null.
  bool write(uint32_t key, uint32_t domain, uint64_t address, const uint8_t* from, uint32_t length) const {
    const Slot* slot = slot_again(key);
    if (slot != nullptr && slot->region.lists != nullptr) {
      return each_part(slot->region, domain, address, length, kLocalWrite, [&](uint8_t* to, uint32_t part) {
        if (from == nullptr) return;
        std::memcpy(to, from, part);
        from += part;
      });
    }
    uint8_t* const to = find(slot, domain, address, length, kLocalWrite);
    if (to != nullptr && from != nullptr) std::memcpy(to, from, length);
    return to != nullptr;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kMostGathered = 4'096;
  static constexpr uint8_t kWrites = kLocalWrite | kRemoteWrite | kRemoteAtomic;

  struct Slot {
    MemoryRegion region;
    uint32_t key = 0;
    uint32_t next = kNone;  // next of those whose keys have the same low bits
    bool valid = false;
  };
  // Looks in a slot, which may be null.
  uint8_t* find(const Slot* slot, uint32_t domain, uint64_t address, uint64_t length, uint8_t access, uint32_t qpn = 0) const {
    if (slot == nullptr || !slot->valid || slot->region.lists != nullptr) return nullptr;
    const MemoryRegion& region = slot->region;
    if (region.domain != domain || (region.access & access) != access) return nullptr;
    if (region.qpn != 0 && region.qpn != qpn) return nullptr;
    const uint64_t offset = address - region.address;
    if (address < region.address || offset > region.length || length > region.length - offset) return nullptr;
    if (!region.scratch) {
      uint8_t* const first = region.data + offset;
      return probe_ == nullptr || probe_(first, length, (access & kWrites) != 0) ? first : nullptr;
    }
    return region.sink != nullptr && (access & kWrites) != 0 ? region.sink : region.data;
  }
  // The place of `key`, which its list has no more; kNone when there is no such key.
  uint32_t unlink(uint32_t key) {
    for (uint32_t* link = &head_of(key); *link != kNone; link = &slots_[*link].next) {
      if (slots_[*link].key == key) return std::exchange(*link, slots_[*link].next);
    }
    return kNone;
  }
  uint32_t& head_of(uint32_t key) { return heads_[key & (heads_.size() - 1)]; }
  // False as soon as one part is not there.
  template <class Each>
  bool each_part(const MemoryRegion& region, uint32_t domain, uint64_t address, uint64_t length, uint8_t access,
                 const Each& each) const {
    if (region.domain != domain) return false;
    uint64_t offset = address & UINT32_MAX;
    for (const MemoryPiece& piece : region.lists->at(address)) {
      if (offset >= piece.length) {
        offset -= piece.length;
        continue;
      }
      const auto part = static_cast<uint32_t>(std::min(length, piece.length - offset));
      uint8_t* const at = find(piece.key, domain, piece.address + offset, part, access);
      if (at == nullptr) return false;
      each(at, part);
      length -= part;
      if (length == 0) return true;
      offset = 0;
    }
    return false;
  }
  const Slot* find_slot(uint32_t key) const {
    uint32_t index = heads_[key & (heads_.size() - 1)];
    while (index != kNone && slots_[index].key != key) index = slots_[index].next;
    return index == kNone ? nullptr : &slots_[index];
  }
  // Packets of a queue pair have the key of the packet before. A slot whose region is gone has the key 0, and is not valid.
  const Slot* slot_again(uint32_t key) const {
    if (latest_ == nullptr || latest_->key != key) latest_ = find_slot(key);
    return latest_;
  }

  KeySequence keys_;
  Probe probe_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> heads_;  // heads of lists of slots, by the low bits of their keys
  std::vector<uint32_t> free_;
  std::unique_ptr<uint8_t[]> gathered_;   // used with lists
  mutable const Slot* latest_ = nullptr;  // last result of slot_again()
};

}  // namespace weir
