// Events to come, by device and by window of time.
//
// Whatever one device does to another takes at least the lookahead: a frame has to cross a link. So within a window no longer
// than that, devices do not know of each other, and each lives through the whole window by itself: its data stay in the
// caches, however many devices there are (conservative synchronisation; Chandy and Misra 1979). At a device events happen in the
// order of (time, kind, purpose), and frames that come from one port at one time in the order in which they were sent. That order
// depends neither on where a run is cut nor on when a device is told of an event to come.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/types.h"
#include "simulation/event.h"
#include "simulation/inboxes.h"

namespace weir {

class Schedule {
 public:
  // `lookahead` > 0: at least this long, in ns, passes until what one device does happens at another.
  Schedule(uint32_t devices, Time lookahead)
      : devices_(devices),
        words_((devices + 63) / 64),
        length_(static_cast<uint64_t>(std::min(kLongest, lookahead))),
        windows_per_ns_((uint64_t{1} << kFractionBits) / length_ + 1),
        inboxes_(devices, kSlots),
        active_(static_cast<size_t>(words_) * kSlots) {}

  // The time is not before the event under way; at another device, not before window() after it.
  void push(Time at, uint32_t kind, uint32_t packet, uint32_t device) {
    const uint64_t since = static_cast<uint64_t>(at - start_);
    if (since < kSlots * length_) [[likely]] {
      // A product is as exact as a division that far, and much quicker.
      const uint64_t ahead = since * windows_per_ns_ >> kFractionBits;
      const uint64_t entry = entry_of(since - ahead * length_, kind, packet);
      if (ahead > 0 || !under_way_) return file(entry, (window_ + ahead) % kSlots, device);
      own_.push_back(entry);
      std::push_heap(own_.begin(), own_.end(), after);
    } else {
      far_.push_back({{at, kind, packet, device}, ++far_sequence_});
      std::push_heap(far_.begin(), far_.end(), later);
    }
  }
  // Takes away everything of one kind that has not happened yet at a device: gone(packet) for each. Not to be called in run().
  template <class Gone>
  void remove(uint32_t device, uint32_t kind, Gone gone) {
    for (size_t slot = 0; slot < kSlots; ++slot) {
      unsorted_.clear();
      inboxes_.take(slot, device, unsorted_);
      for (const uint64_t entry : unsorted_) {
        const Event event = event_of(entry, device);
        if (event.kind == kind) {
          gone(event.packet);
          --counts_[slot];
        } else {
          inboxes_.put(slot, device, entry);
        }
      }
    }
    std::erase_if(far_, [&](const Far& far) {
      if (far.event.device != device || far.event.kind != kind) return false;
      gone(far.event.packet);
      return true;
    });
    std::make_heap(far_.begin(), far_.end(), later);
  }
  // Windows are numbered from time 0 on; this is the longest, ns.
  static constexpr Time kLongest = 1'024;
  static constexpr uint64_t kNoWindow = UINT64_MAX;
  Time window() const { return static_cast<Time>(length_); }
  uint64_t window_of(Time at) const { return static_cast<uint64_t>(at) / length_; }
  Time start_of(uint64_t window) const { return static_cast<Time>(window * length_); }
  // Number of events so far.
  uint64_t events() const { return events_; }

  // The earliest window in which anything is going to happen, or kNoWindow.
  uint64_t next_window() const {
    uint64_t next = far_.empty() ? kNoWindow : window_of(far_.front().event.at);
    for (uint64_t ahead = 0; ahead < kSlots && window_ + ahead < next; ++ahead) {
      if (counts_[(window_ + ahead) % kSlots] > 0) next = window_ + ahead;
    }
    return next;
  }

  // Calls handle(event) for everything in `window`, none being before it, up to but not at `end`; until ready() is false, and
  // then returns false when there is more of it. Some time before that it calls fetch(event, stage) for the caches, stage by
  // stage: each may look at what those before have fetched. If there are many events at a device, some are not announced but by
  // stage 0. sent_before(a, b): whether packet a was sent before packet b, of which one port has sent both, and which arrive at
  // one time.
  static constexpr size_t kStages = 4;
  template <class Handle, class Ready, class Fetch, class SentBefore>
  bool run(uint64_t window, Time end, Handle handle, Ready ready, Fetch fetch, SentBefore sent_before) {
    window_ = window;
    start_ = start_of(window);
    const size_t slot = window_ % kSlots;
    file_far(slot);
    if (counts_[slot] == 0) return true;
    under_way_ = true;
    list_devices(slot);
    bool done = true;
    for (size_t i = 0; i < list_.size(); ++i) {
      if (devices_ >= kMany) announce(slot, i, fetch);
      done &= live(slot, list_[i], end, handle, ready, fetch, sent_before);
    }
    under_way_ = false;
    return done;
  }

 private:
  static constexpr uint64_t kSlots = 16;  // windows that are filled already
  static constexpr size_t kFew = 24;
  static constexpr uint32_t kMany = 64;  // devices, which do not stay in the caches
  static constexpr size_t kAhead = 8;
  static constexpr int kFractionBits = 26;  // kSlots * kLongest * kLongest is less than 2^26

  Event event_of(uint64_t entry, uint32_t device) const { return weir::event_of(entry, start_, device); }
  // Not a function: its address would be called for each comparison.
  static constexpr auto after = [](uint64_t a, uint64_t b) { return before(b, a); };

  struct Far {
    Event event;
    uint64_t sequence;
  };
  static bool later(const Far& a, const Far& b) {
    return a.event.at != b.event.at ? a.event.at > b.event.at : a.sequence > b.sequence;
  }

  void file(uint64_t entry, size_t slot, uint32_t device) {
    inboxes_.put(slot, device, entry);
    active_[slot * words_ + device / 64] |= uint64_t{1} << (device % 64);
    ++counts_[slot];
  }

  // Files events that lie in the present window and were far away.
  void file_far(size_t slot) {
    while (!far_.empty() && far_.front().event.at < start_of(window_ + 1)) {
      const Event& event = far_.front().event;
      file(entry_of(static_cast<uint64_t>(event.at) % length_, event.kind, event.packet), slot, event.device);
      std::pop_heap(far_.begin(), far_.end(), later);
      far_.pop_back();
    }
  }

  // Lists the devices with anything in their inboxes, in order; the marks are taken off.
  void list_devices(size_t slot) {
    list_.clear();
    for (uint32_t word = 0; word < words_; ++word) {
      for (uint64_t left = std::exchange(active_[slot * words_ + word], 0); left != 0; left &= left - 1) {
        list_.push_back(word * 64 + static_cast<uint32_t>(std::countr_zero(left)));
      }
    }
  }

  // Announces the devices behind the next one, each one stage further.
  template <class Fetch>
  __attribute__((always_inline)) void announce(size_t slot, size_t next, Fetch& fetch) const {
    if (next + kStages + 1 < list_.size()) inboxes_.fetch(slot, list_[next + kStages + 1]);
    for (size_t stage = 0; stage < kStages; ++stage) {
      if (next + kStages - stage >= list_.size()) continue;
      const uint32_t device = list_[next + kStages - stage];
      const auto one = [&](uint64_t entry) __attribute__((always_inline)) { fetch(event_of(entry, device), stage); };
      inboxes_.fetch_first(slot, device, one);
    }
  }

  // One device's window up to `end`.
  template <class Handle, class Ready, class Fetch, class SentBefore>
  bool live(size_t slot, uint32_t device, Time end, Handle& handle, Ready& ready, Fetch& fetch, SentBefore& sent_before) {
    sorted_.clear();
    inboxes_.take(slot, device, sorted_);
    sort([&](uint64_t a, uint64_t b) {
      return before(a, b) || (of_one_port(a, b) && sent_before(static_cast<uint32_t>(a), static_cast<uint32_t>(b)));
    });
    const size_t count = sorted_.size();
    counts_[slot] -= count;
    size_t next = 0;
    bool stopped = false;
    for (;;) {
      const bool own = !own_.empty() && (next == count || before(own_.front(), sorted_[next]));
      if (!own && next == count) break;
      const Event event = event_of(own ? own_.front() : sorted_[next], device);
      if (event.at >= end) break;
      stopped = !ready();
      if (stopped) [[unlikely]]
        break;
      if (own) {
        std::pop_heap(own_.begin(), own_.end(), after);
        own_.pop_back();
      } else {
        if (next + kAhead < count) fetch(event_of(sorted_[next + kAhead], device), 0);
        if (devices_ >= kMany && next + kAhead / 2 < count) fetch(event_of(sorted_[next + kAhead / 2], device), 1);
        ++next;
      }
      ++events_;
      handle(event);
    }
    for (; next < count; ++next) file(sorted_[next], slot, device);
    for (const uint64_t entry : own_) file(entry, slot, device);
    own_.clear();
    return !stopped;
  }

  // Sorts stably. Many entries go into about as many buckets of time first.
  template <class Before>
  void sort(Before comes_before) {
    if (sorted_.size() > kFew) {
      const int shift = std::max(0, 10 - static_cast<int>(std::bit_width(sorted_.size())));
      const auto bucket = [shift](uint64_t entry) { return static_cast<size_t>(entry >> kEntryTimeShift >> shift); };
      std::fill_n(ends_.begin(), ends_.size() >> shift, 0);
      for (const uint64_t entry : sorted_) ++ends_[bucket(entry)];
      uint32_t sum = 0;
      for (size_t i = 0; i < ends_.size() >> shift; ++i) ends_[i] = std::exchange(sum, sum + ends_[i]);
      unsorted_.swap(sorted_);
      sorted_.resize(unsorted_.size());
      for (const uint64_t entry : unsorted_) sorted_[ends_[bucket(entry)]++] = entry;
    }
    for (size_t i = 1; i < sorted_.size(); ++i) {
      if (!comes_before(sorted_[i], sorted_[i - 1])) continue;
      const uint64_t entry = sorted_[i];
      size_t place = i;
      for (; place > 0 && comes_before(entry, sorted_[place - 1]); --place) sorted_[place] = sorted_[place - 1];
      sorted_[place] = entry;
    }
  }

  uint32_t devices_, words_;
  uint64_t length_;          // length of a window, ns
  uint64_t windows_per_ns_;  // in units of 2^-kFractionBits, rounded up
  uint64_t window_ = 0;      // the present one, counted from time 0
  Time start_ = 0;           // its start
  bool under_way_ = false;   // a device is living through it
  uint64_t events_ = 0;
  std::vector<uint32_t> list_;  // devices with anything in the present window
  std::vector<uint64_t> own_;   // events that that device makes for itself in it: a heap
  Inboxes inboxes_;
  std::vector<uint64_t> active_;           // marks by slot: the inboxes that have anything
  std::array<uint64_t, kSlots> counts_{};  // counts by slot: events in the inboxes
  std::vector<Far> far_;                   // events beyond the slots: a heap
  uint64_t far_sequence_ = 0;
  std::array<uint32_t, kLongest> ends_{};
  std::vector<uint64_t> sorted_, unsorted_;  // events in the present device's inbox
};

}  // namespace weir
