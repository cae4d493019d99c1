// A hierarchical timing wheel (Varghese and Lauck 1987) with exact order: one pending time for each of n entries.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/indexed_heap.h"
#include "base/types.h"

namespace weir {

// Entries are the indexes 0..n-1 of whatever the owner keeps (queue pairs). They come out in the order of (time, order of
// scheduling), also within a tick: a slot that has been reached is emptied into a small heap, so order costs
// O(log of the entries per tick) and only for what is due. Scheduling and cancelling later entries is O(1).
//
// Four levels of 256 slots reach 2^32 ticks ahead, within aligned blocks of that length; what lies in a later block waits in one
// list and is spread out when its block is reached. Each entry moves at most once per level. Allocates in the constructor only.
class TimingWheel {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // For entries below `entries`; `tick` > 0 in ns: about the time one turn of the loop takes is a good choice.
  TimingWheel(uint32_t entries, Time tick)
      : nodes_(entries), due_(entries), heads_(entries > 0 ? kLater + 1 : 0, kNone), tick_(static_cast<uint64_t>(tick)) {}

  // Sets or replaces the time of `entry`; kNever cancels. A replaced entry is ordered as if scheduled now.
  void schedule(uint32_t entry, Time at) {
    cancel(entry);
    if (at == kNever) return;
    nodes_[entry].at = at;
    nodes_[entry].sequence = ++sequence_;
    file(entry);
  }

  // Nothing happens when `entry` is not scheduled.
  void cancel(uint32_t entry) {
    if (due_.contains(entry)) {
      due_.remove(entry);
    } else if (nodes_[entry].slot != kIdle) {
      if (nodes_[entry].at == earliest_) earliest_known_ = false;
      unlink(entry);
    }
  }

  bool scheduled(uint32_t entry) const { return due_.contains(entry) || nodes_[entry].slot != kIdle; }
  // Only for a scheduled entry.
  Time at(uint32_t entry) const { return nodes_[entry].at; }

  // The earliest scheduled time, exactly; kNever when there is none.
  Time next_deadline() const {
    if (!due_.empty()) return due_.top_key().at;
    if (!earliest_known_) {
      earliest_ = scan_earliest();
      earliest_known_ = true;
    }
    return earliest_;
  }

  // Removes and returns the earliest entry scheduled at or before `now`, or kNone. Call until kNone.
  uint32_t pop_due(Time now) {
    move_to(tick_of(now));
    if (due_.empty() || due_.top_key().at > now) return kNone;
    return due_.pop();
  }

 private:
  static constexpr int kLevels = 4;
  static constexpr uint16_t kLater = kLevels * 256;  // the list of what lies beyond the current 2^32 ticks
  static constexpr uint16_t kIdle = UINT16_MAX;

  struct Node {
    Time at = kNever;
    uint64_t sequence = 0;
    uint32_t previous = kNone;
    uint32_t next = kNone;
    uint16_t slot = kIdle;  // level * 256 + slot, kLater, or kIdle when in no list
  };
  struct Due {
    Time at = kNever;
    uint64_t sequence = 0;
    bool operator<(const Due& other) const { return at != other.at ? at < other.at : sequence < other.sequence; }
  };

  uint64_t tick_of(Time at) const { return at <= 0 ? 0 : static_cast<uint64_t>(at) / tick_; }

  // The level is the highest byte in which the entry's tick differs from the position. So every entry of a level is due before
  // all entries of the next, slots ahead of the position are in order, and moving the position up to, not into, the first
  // occupied slot leaves every entry in its right place.
  void file(uint32_t entry) {
    Node& node = nodes_[entry];
    const uint64_t tick = tick_of(node.at);
    if (tick <= position_) {
      due_.set(entry, {node.at, node.sequence});
      return;
    }
    const int level = (63 - std::countl_zero(tick ^ position_)) / 8;
    const uint16_t slot =
        level >= kLevels ? kLater : static_cast<uint16_t>(level * 256 + static_cast<int>((tick >> (8 * level)) & 255));
    node.slot = slot;
    node.previous = kNone;
    node.next = heads_[slot];
    if (node.next != kNone) nodes_[node.next].previous = entry;
    heads_[slot] = entry;
    if (slot != kLater) occupied_[slot / 64] |= uint64_t{1} << (slot % 64);
    if (earliest_known_ && node.at < earliest_) earliest_ = node.at;
  }

  void unlink(uint32_t entry) {
    Node& node = nodes_[entry];
    if (node.next != kNone) nodes_[node.next].previous = node.previous;
    if (node.previous != kNone) {
      nodes_[node.previous].next = node.next;
    } else {
      heads_[node.slot] = node.next;
      if (node.next == kNone && node.slot != kLater) occupied_[node.slot / 64] &= ~(uint64_t{1} << (node.slot % 64));
    }
    node.slot = kIdle;
  }

  // The list that holds the earliest entries: kLater or a slot, or kIdle when all are empty.
  uint16_t first_list() const {
    if (heads_.empty()) return kIdle;
    for (size_t word = 0; word < occupied_.size(); ++word) {
      if (occupied_[word] != 0) return static_cast<uint16_t>(word * 64 + static_cast<size_t>(std::countr_zero(occupied_[word])));
    }
    return heads_[kLater] != kNone ? kLater : kIdle;
  }

  Time scan_earliest() const {
    const uint16_t list = first_list();
    Time earliest = kNever;
    if (list == kIdle) return earliest;
    for (uint32_t entry = heads_[list]; entry != kNone; entry = nodes_[entry].next) {
      if (nodes_[entry].at < earliest) earliest = nodes_[entry].at;
    }
    return earliest;
  }

  // The first tick of `list`.
  uint64_t first_tick(uint16_t list) const {
    if (list == kLater) return tick_of(scan_earliest()) >> 32 << 32;
    const int level = list / 256;
    const uint64_t above = position_ >> (8 * level) >> 8 << 8;
    return (above | (list % 256)) << (8 * level);
  }

  // Everything up to and including tick `target` moves to due_.
  void move_to(uint64_t target) {
    if (target <= position_) return;
    for (uint16_t list = first_list(); list != kIdle; list = first_list()) {
      const uint64_t start = first_tick(list);
      if (start > target) break;
      position_ = start;
      earliest_known_ = false;
      uint32_t entry = heads_[list];
      heads_[list] = kNone;
      if (list != kLater) occupied_[list / 64] &= ~(uint64_t{1} << (list % 64));
      while (entry != kNone) {
        const uint32_t next = nodes_[entry].next;
        nodes_[entry].slot = kIdle;
        file(entry);
        entry = next;
      }
    }
    position_ = target;
  }

  std::vector<Node> nodes_;
  BasicIndexedHeap<Due> due_;  // every entry whose tick is at or before the position
  std::vector<uint32_t> heads_;
  std::array<uint64_t, kLevels * 4> occupied_{};
  uint64_t tick_;
  uint64_t position_ = 0;
  uint64_t sequence_ = 0;
  mutable Time earliest_ = kNever;  // of the lists, without due_; valid when known
  mutable bool earliest_known_ = true;
};

}  // namespace weir
