// A hierarchical timing wheel (Varghese and Lauck 1987) with exact order: one pending time for each of n entries.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "link/due_heap.h"

namespace weir {

// Entries are the indexes 0..n-1 of whatever the owner keeps (queue pairs). They come out in the order of (time, order of
// scheduling), also within a tick: a slot that has been reached is emptied into a small heap, so order costs
// O(log of the entries per tick) and only for what is due. Scheduling and cancelling later entries is O(1).
//
// Three levels of 2048 slots reach 2^33 ticks ahead, within aligned blocks of that length; what lies in a later block waits in
// one list and is spread out when its block is reached. Each entry moves at most once per level: with a tick of a microsecond
// what is due within 2 ms commonly lies where it stays. Allocates in the constructor only.
class TimingWheel {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Entries are numbers below `entries`. `tick` > 0 in ns, rounded up to a power of two: about the time one turn of the loop
  // takes is a good choice.
  TimingWheel(uint32_t entries, Time tick)
      : nodes_(entries),
        due_(entries),
        lists_(entries > 0 ? kLater + 1 : 0),
        tick_bits_(std::bit_width(static_cast<uint64_t>(tick) - 1)) {}

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
    Node& node = nodes_[entry];
    if (node.slot == kIdle) return;
    if (node.slot == kDue) {
      due_.remove(node.previous, Placing{nodes_.data()});
    } else {
      unlink(entry);
    }
    node.slot = kIdle;
  }

  bool scheduled(uint32_t entry) const { return nodes_[entry].slot != kIdle; }
  // The entry must be scheduled.
  Time at(uint32_t entry) const { return nodes_[entry].at; }

  // The earliest scheduled time, exactly; kNever when there is none.
  Time next_deadline() const {
    if (!due_.empty()) return due_.front().at;
    const uint16_t list = first_list();
    return list == kIdle ? kNever : earliest(list);
  }

  // Removes and returns the earliest entry scheduled at or before `now`, or kNone. Call until kNone.
  uint32_t pop_due(Time now) {
    if (due_.empty()) {
      const uint64_t tick = tick_of(now);
      if (tick > position_) move_to(tick);
    }
    if (due_.empty() || due_.front().at > now) return kNone;
    const uint32_t entry = due_.front().entry;
    nodes_[entry].slot = kIdle;
    due_.remove(0, Placing{nodes_.data()});
    return entry;
  }

  // Calls visit(entry, its time) for each of them.
  template <class Visit>
  void each_due(Time now, Visit visit) {
    for (uint32_t entry = pop_due(now); entry != kNone; entry = pop_due(now)) visit(entry, nodes_[entry].at);
  }

  // Calls `visit` with entries that will be due by `until`, each once, for who wants to fetch from memory in time what belongs to
  // them. Only those in the finest level, and not those scheduled since for times that were looked at. `seen`: kept by the
  // caller, 0 at first.
  template <class Visit>
  void look_ahead(uint64_t& seen, Time until, Visit visit) const {
    const uint64_t last = std::min(tick_of(until), position_ | kSlotMask);
    if (seen >= last || lists_.empty()) return;
    for (uint64_t tick = std::max(seen, position_) + 1; tick <= last; ++tick) {
      for (uint32_t entry = lists_[tick & kSlotMask].head; entry != kNone; entry = nodes_[entry].next) visit(entry);
    }
    seen = last;
  }

 private:
  static constexpr int kLevels = 3;
  static constexpr int kSlotBits = 11;
  static constexpr int kSlots = 1 << kSlotBits;
  static constexpr uint64_t kSlotMask = kSlots - 1;
  static constexpr int kWords = kSlots / 64;
  static constexpr uint16_t kLater = kLevels * kSlots;  // the list of what lies beyond the last level
  static constexpr uint16_t kDue = UINT16_MAX - 1;
  static constexpr uint16_t kIdle = UINT16_MAX;

  struct alignas(32) Node {
    Time at = kNever;
    uint64_t sequence = 0;
    uint32_t previous = kNone;  // position in due_ where the entry is due
    uint32_t next = kNone;
    uint16_t slot = kIdle;  // level * kSlots + slot, kLater, kDue, or kIdle when not scheduled
  };
  struct List {
    uint32_t head = kNone;
    mutable Time earliest = kNever;  // earliest time of its entries; kNever when not known
  };

  struct Placing {
    Node* nodes;
    void operator()(uint32_t entry, uint32_t position) const { nodes[entry].previous = position; }
  };

  uint64_t tick_of(Time at) const { return at <= 0 ? 0 : static_cast<uint64_t>(at) >> tick_bits_; }

  void make_due(uint32_t entry) {
    Node& node = nodes_[entry];
    node.slot = kDue;
    due_.push({node.at, node.sequence, entry}, Placing{nodes_.data()});
  }

  // The level is the highest group of kSlotBits in which the entry's tick differs from the position. So every entry of a level is
  // due before all entries of the next, slots ahead of the position are in order, and moving the position up to, not into, the
  // first occupied slot leaves every entry in its right place.
  void file(uint32_t entry) {
    Node& node = nodes_[entry];
    const uint64_t tick = tick_of(node.at);
    if (tick <= position_) return make_due(entry);
    const uint64_t differs = tick ^ position_;
    if (differs < kSlots) return enlist(entry, static_cast<uint16_t>(tick & kSlotMask));
    if (differs >= uint64_t{1} << kLevels * kSlotBits) return enlist(entry, kLater);
    const int level = 1 + (differs >= uint64_t{1} << 2 * kSlotBits);
    enlist(entry, static_cast<uint16_t>(level * kSlots + static_cast<int>(tick >> (level * kSlotBits) & kSlotMask)));
  }

  void enlist(uint32_t entry, uint16_t slot) {
    Node& node = nodes_[entry];
    node.slot = slot;
    node.previous = kNone;
    List& list = lists_[slot];
    node.next = list.head;
    if (node.next == kNone) {
      list.earliest = node.at;
    } else {
      nodes_[node.next].previous = entry;
      if (list.earliest != kNever) list.earliest = std::min(list.earliest, node.at);
    }
    list.head = entry;
    if (slot == kLater) return;
    words_[slot / kSlots] |= 1u << (slot / 64 % kWords);
    occupied_[slot / 64] |= uint64_t{1} << (slot % 64);
  }

  // `slot` has become empty.
  void vacate(uint16_t slot) {
    if (slot == kLater) return;
    uint64_t& word = occupied_[slot / 64];
    word &= ~(uint64_t{1} << (slot % 64));
    if (word == 0) words_[slot / kSlots] &= ~(1u << (slot / 64 % kWords));
  }

  void unlink(uint32_t entry) {
    const Node& node = nodes_[entry];
    if (node.at == lists_[node.slot].earliest) lists_[node.slot].earliest = kNever;
    if (node.next != kNone) nodes_[node.next].previous = node.previous;
    if (node.previous != kNone) {
      nodes_[node.previous].next = node.next;
    } else {
      lists_[node.slot].head = node.next;
      if (node.next == kNone) vacate(node.slot);
    }
  }

  // The list that holds the earliest entries: kLater or a slot, or kIdle when all are empty.
  uint16_t first_list() const {
    for (size_t level = 0; level < kLevels; ++level) {
      if (words_[level] == 0) continue;
      const size_t word = level * kWords + static_cast<size_t>(std::countr_zero(words_[level]));
      return static_cast<uint16_t>(word * 64 + static_cast<size_t>(std::countr_zero(occupied_[word])));
    }
    return !lists_.empty() && lists_[kLater].head != kNone ? kLater : kIdle;
  }

  // Returns the earliest time in a list that is not empty.
  Time earliest(uint16_t list) const {
    Time& earliest = lists_[list].earliest;
    if (earliest == kNever) {
      for (uint32_t entry = lists_[list].head; entry != kNone; entry = nodes_[entry].next) {
        earliest = std::min(earliest, nodes_[entry].at);
      }
    }
    return earliest;
  }

  // The first tick of `list`.
  uint64_t first_tick(uint16_t list) const {
    if (list == kLater) return tick_of(earliest(kLater)) & ~uint64_t{0} << kLevels * kSlotBits;
    const int shift = list / kSlots * kSlotBits;
    const uint64_t above = position_ >> shift & ~kSlotMask;
    return (above | (list & kSlotMask)) << shift;
  }

  // The first tick with entries, up to `target`, moves to due_, which is empty: a heap of what a longer time has costs more.
  // It is called: who asks whether anything is due mostly hears that nothing is, and ought to hear it at once.
  __attribute__((noinline)) void move_to(uint64_t target) {
    for (uint16_t list = first_list(); list != kIdle; list = first_list()) {
      const uint64_t start = first_tick(list);
      if (start > target) break;
      position_ = start;
      // The newest is in front. From the end they come in the order of scheduling, in which a heap takes them at no cost.
      uint32_t entry = lists_[list].head;
      for (uint32_t next = nodes_[entry].next; next != kNone; next = nodes_[next].next) entry = next;
      lists_[list].head = kNone;
      vacate(list);
      while (entry != kNone) {
        const uint32_t previous = nodes_[entry].previous;
        list < kSlots ? make_due(entry) : file(entry);
        entry = previous;
      }
      if (!due_.empty()) return;
    }
    position_ = target;
  }

  std::vector<Node> nodes_;
  DueHeap due_;  // every entry whose tick is at or before the position
  std::vector<List> lists_;
  std::array<uint32_t, kLevels> words_{};  // for each level, the words of occupied_ that are not 0
  std::array<uint64_t, kLevels * kWords> occupied_{};
  int tick_bits_;
  uint64_t position_ = 0;
  uint64_t sequence_ = 0;
};

}  // namespace weir
