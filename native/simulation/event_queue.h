// The pending events of a simulation: a calendar of one-nanosecond bins (Brown 1988), hierarchical like a timing wheel.
//
// Events come out in the order of (time, order of scheduling), which makes a run repeatable. Three levels of 4096 bins reach 2^36
// ns ahead within aligned blocks; what lies beyond waits in one list. An event moves at most once per level, and bins keep the
// order in which they were filled, so a bin that is spread out over the next finer level is never out of order.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/types.h"

namespace weir {

struct Event {
  Time at = 0;
  uint32_t kind = 0;  // what happens, and to whom: the owner's business
  uint32_t packet = 0;
};

class EventQueue {
 public:
  // Not before the time of the event that was popped last, nor before the `until` of a pop() that has failed.
  void push(const Event& event) {
    const uint32_t id = make(event);
    file(id, event.at);
    ++size_;
  }
  // The next event at or before `until`; false when there is none.
  bool pop(Time until, Event& event) {
    while (levels_[0].empty()) {
      if (!refill(until)) return false;
    }
    const uint32_t bin = levels_[0].first();
    const Time at = (position_ & ~kMask) | bin;
    if (at > until) return false;
    position_ = at;
    List& list = levels_[0].bins[bin];
    Node& node = nodes_[list.head];
    event = node.event;
    const uint32_t id = list.head;
    list.head = node.next;
    if (list.head == kNone) {
      list.tail = kNone;
      levels_[0].clear(bin);
    } else {
      __builtin_prefetch(&nodes_[list.head]);
    }
    node.next = free_;
    free_ = id;
    --size_;
    return true;
  }
  // What comes out next at the time of the event that was popped last, as far as it is pending already: fills `events` up to
  // `most` and returns how many. For fetching memory in time.
  int ahead(const Event** events, int most) const {
    int count = 0;
    uint32_t id = levels_[0].bins[position_ & kMask].head;
    for (; count < most && id != kNone; id = nodes_[id].next) events[count++] = &nodes_[id].event;
    if (id != kNone) __builtin_prefetch(&nodes_[id]);
    return count;
  }
  bool empty() const { return size_ == 0; }
  uint64_t size() const { return size_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr int kBits = 12;
  static constexpr uint32_t kBins = 1 << kBits;
  static constexpr Time kMask = kBins - 1;
  static constexpr int kLevels = 3;

  struct Node {
    Event event;
    uint32_t next = kNone;
  };
  struct List {
    uint32_t head = kNone;
    uint32_t tail = kNone;
  };
  struct Level {
    std::array<List, kBins> bins;
    std::array<uint64_t, kBins / 64> occupied{};
    uint64_t summary = 0;

    bool empty() const { return summary == 0; }
    // Bins before the position are empty, so that the lowest is the earliest.
    uint32_t first() const {
      const auto word = static_cast<uint32_t>(std::countr_zero(summary));
      return word * 64 + static_cast<uint32_t>(std::countr_zero(occupied[word]));
    }
    void set(uint32_t bin) {
      occupied[bin / 64] |= uint64_t{1} << (bin % 64);
      summary |= uint64_t{1} << (bin / 64);
    }
    void clear(uint32_t bin) {
      occupied[bin / 64] &= ~(uint64_t{1} << (bin % 64));
      if (occupied[bin / 64] == 0) summary &= ~(uint64_t{1} << (bin / 64));
    }
  };

  uint32_t make(const Event& event) {
    if (free_ == kNone) {
      nodes_.push_back({event, kNone});
      return static_cast<uint32_t>(nodes_.size() - 1);
    }
    const uint32_t id = free_;
    free_ = nodes_[id].next;
    nodes_[id] = {event, kNone};
    return id;
  }

  void append(List& list, uint32_t id) {
    (list.tail == kNone ? list.head : nodes_[list.tail].next) = id;
    list.tail = id;
  }

  // The level is the highest group of bits in which the event's time differs from the position.
  void file(uint32_t id, Time at) {
    const auto differs = static_cast<uint64_t>(at ^ position_);
    const int level = differs < kBins ? 0 : (63 - std::countl_zero(differs)) / kBits;
    if (level >= kLevels) return append(later_, id);
    const auto bin = static_cast<uint32_t>(at >> (kBits * level) & kMask);
    Level& home = levels_[static_cast<size_t>(level)];
    if (home.bins[bin].head == kNone) home.set(bin);
    append(home.bins[bin], id);
  }

  // Moves the position to the next occupied bin of a coarser level and spreads that out. False when it begins after `until`.
  bool refill(Time until) {
    for (int level = 1; level < kLevels; ++level) {
      Level& coarse = levels_[static_cast<size_t>(level)];
      if (coarse.empty()) continue;
      const uint32_t bin = coarse.first();
      const int shift = kBits * level;
      const Time start = (position_ >> (shift + kBits) << kBits | bin) << shift;
      if (start > until) return false;
      position_ = start;
      coarse.clear(bin);
      const List list = coarse.bins[bin];
      coarse.bins[bin] = {};
      spread(list);
      return true;
    }
    if (later_.head == kNone) return false;
    Time earliest = kNever;
    for (uint32_t id = later_.head; id != kNone; id = nodes_[id].next) {
      if (nodes_[id].event.at < earliest) earliest = nodes_[id].event.at;
    }
    const Time start = earliest >> (kBits * kLevels) << (kBits * kLevels);
    if (start > until) return false;
    position_ = start;
    const List list = later_;
    later_ = {};
    spread(list);
    return true;
  }

  void spread(const List& list) {
    for (uint32_t id = list.head; id != kNone;) {
      Node& node = nodes_[id];
      const uint32_t next = node.next;
      node.next = kNone;
      file(id, node.event.at);
      id = next;
    }
  }

  std::array<Level, kLevels> levels_;
  List later_;
  std::vector<Node> nodes_;
  uint32_t free_ = kNone;
  Time position_ = 0;  // of the last event, or the start of the block that was spread out last
  uint64_t size_ = 0;
};

}  // namespace weir
