// What is going to happen, by device and by window of time.
//
// Whatever one device does to another takes at least the lookahead: a frame has to cross a link. So within a window no longer
// than that, devices do not know of each other, and each lives through the whole window by itself: what it needs stays in the
// caches, however many devices there are (conservative synchronisation; Chandy and Misra 1979). At a device events happen in the
// order of (time, kind, purpose), and frames that come from one port at one time in the order in which they were sent. That order
// depends neither on where a run is cut nor on when a device is told of what is going to happen.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/types.h"

namespace weir {

struct Event {
  Time at = 0;
  uint32_t kind = 0;    // what happens
  uint32_t packet = 0;  // or what a device is woken for
  uint32_t device = 0;  // where
};

// A device is woken; any other kind is the port at which a frame arrives.
inline constexpr uint32_t kWake = UINT32_MAX;
constexpr bool is_frame(const Event& event) { return event.kind != kWake; }

class Schedule {
 public:
  // `lookahead` > 0: at least this long, in ns, passes until what one device does happens at another.
  Schedule(uint32_t devices, Time lookahead)
      : devices_(devices),
        words_((devices + 63) / 64),
        length_(static_cast<uint64_t>(std::min(kLongest, lookahead))),
        inboxes_(static_cast<size_t>(devices) * kSlots),
        active_(static_cast<size_t>(words_) * kSlots) {}

  // Not before the event under way; if at another device, not before window() after it.
  //
  // Field by field into its place: an Event that was put together elsewhere would be copied in wider pieces than it was written
  // in, for which a processor waits until all that it has stored before is in the cache.
  void push(Time at, uint32_t kind, uint32_t packet, uint32_t device) {
    const Event event{at, kind, packet, device};
    const uint64_t window = window_of(at);
    if (window == window_ && under_way_) {
      // As std::push_heap() does it.
      own_.emplace_back();
      size_t place = own_.size() - 1;
      for (; place > 0 && before(event, own_[(place - 1) / 2]); place = (place - 1) / 2) own_[place] = own_[(place - 1) / 2];
      own_[place] = event;
    } else if (window - window_ < kSlots) {
      file(event, window % kSlots);
    } else {
      far_.push_back(event);
      std::push_heap(far_.begin(), far_.end(), later);
    }
  }
  // Takes away everything of one kind that has not happened yet at a device: gone(packet) for each. Not within run().
  template <class Gone>
  void remove(uint32_t device, uint32_t kind, Gone gone) {
    const auto is_gone = [&](const Event& event) {
      if (event.device != device || event.kind != kind) return false;
      gone(event.packet);
      return true;
    };
    for (size_t slot = 0; slot < kSlots; ++slot) counts_[slot] -= std::erase_if(inboxes_[slot * devices_ + device], is_gone);
    std::erase_if(far_, is_gone);
    std::make_heap(far_.begin(), far_.end(), later);
  }
  // Windows are numbered from time 0 on; this is the longest, ns.
  static constexpr Time kLongest = 1'024;
  static constexpr uint64_t kNoWindow = UINT64_MAX;
  Time window() const { return static_cast<Time>(length_); }
  uint64_t window_of(Time at) const { return static_cast<uint64_t>(at) / length_; }
  Time start_of(uint64_t window) const { return static_cast<Time>(window * length_); }
  // How much has happened.
  uint64_t events() const { return events_; }

  // The earliest window in which anything is going to happen, or kNoWindow.
  uint64_t next_window() const {
    uint64_t next = far_.empty() ? kNoWindow : window_of(far_.front().at);
    for (uint64_t ahead = 0; ahead < kSlots && window_ + ahead < next; ++ahead) {
      if (counts_[(window_ + ahead) % kSlots] > 0) next = window_ + ahead;
    }
    return next;
  }

  // Calls handle(event) for everything in `window`, none being before it, up to but not at `end`; until ready() is false, and
  // then returns false when there is more of it. Some time before that, fetch(event): for the caches. sent_before(a, b): whether
  // packet a was sent before packet b, of which one port has sent both, and which arrive at one time.
  template <class Handle, class Ready, class Fetch, class SentBefore>
  bool run(uint64_t window, Time end, Handle handle, Ready ready, Fetch fetch, SentBefore sent_before) {
    window_ = window;
    const size_t slot = window_ % kSlots;
    file_far(slot);
    if (counts_[slot] == 0) return true;
    under_way_ = true;
    list_devices(slot);
    bool done = true;
    for (size_t i = 0; i < list_.size(); ++i) {
      if (i + 2 < list_.size()) __builtin_prefetch(inboxes_[slot * devices_ + list_[i + 2]].data());
      if (i + 1 < list_.size()) fetch_first(inboxes_[slot * devices_ + list_[i + 1]], fetch);
      done &= live(slot, list_[i], end, handle, ready, fetch, sent_before);
    }
    under_way_ = false;
    return done;
  }

 private:
  static constexpr uint64_t kSlots = 16;  // windows that are filled already
  static constexpr size_t kFew = 24;
  static constexpr size_t kAhead = 8;
  static constexpr size_t kFetched = 24;

  static bool before(const Event& a, const Event& b) {
    if (a.at != b.at) return a.at < b.at;
    if (a.kind != b.kind) return a.kind < b.kind;
    return !is_frame(a) && a.packet < b.packet;
  }
  static bool after(const Event& a, const Event& b) { return before(b, a); }

  static bool later(const Event& a, const Event& b) { return a.at > b.at; }

  void file(const Event& event, size_t slot) {
    inboxes_[slot * devices_ + event.device].emplace_back() = event;
    active_[slot * words_ + event.device / 64] |= uint64_t{1} << (event.device % 64);
    ++counts_[slot];
  }

  // What lies in the present window and was far away.
  void file_far(size_t slot) {
    const Time end = start_of(window_ + 1);
    while (!far_.empty() && far_.front().at < end) {
      file(far_.front(), slot);
      std::pop_heap(far_.begin(), far_.end(), later);
      far_.pop_back();
    }
  }

  // Those with anything in their inboxes, in order; the marks are taken off.
  void list_devices(size_t slot) {
    list_.clear();
    for (uint32_t word = 0; word < words_; ++word) {
      for (uint64_t left = std::exchange(active_[slot * words_ + word], 0); left != 0; left &= left - 1) {
        list_.push_back(word * 64 + static_cast<uint32_t>(std::countr_zero(left)));
      }
    }
  }

  template <class Fetch>
  __attribute__((always_inline)) static void fetch_first(const std::vector<Event>& inbox, Fetch& fetch) {
    const size_t count = std::min(inbox.size(), kFetched);
    for (size_t i = 0; i < count; ++i) fetch(inbox[i]);
  }

  // One device's window up to `end`.
  template <class Handle, class Ready, class Fetch, class SentBefore>
  bool live(size_t slot, uint32_t device, Time end, Handle& handle, Ready& ready, Fetch& fetch, SentBefore& sent_before) {
    std::vector<Event>& inbox = inboxes_[slot * devices_ + device];
    sort(inbox, [&](const Event& a, const Event& b) {
      return before(a, b) || (is_frame(a) && a.at == b.at && a.kind == b.kind && sent_before(a.packet, b.packet));
    });
    counts_[slot] -= inbox.size();
    size_t next = 0;
    bool stopped = false;
    for (;;) {
      const bool own = !own_.empty() && (next == inbox.size() || before(own_.front(), inbox[next]));
      if (!own && next == inbox.size()) break;
      const Event event = own ? own_.front() : inbox[next];
      if (event.at >= end) break;
      stopped = !ready();
      if (stopped) [[unlikely]]
        break;
      if (own) {
        std::pop_heap(own_.begin(), own_.end(), after);
        own_.pop_back();
      } else {
        if (next + kAhead < inbox.size()) fetch(inbox[next + kAhead]);
        ++next;
      }
      ++events_;
      handle(event);
    }
    if (next == inbox.size() && own_.empty()) {
      inbox.clear();
      return true;
    }
    inbox.erase(inbox.begin(), inbox.begin() + static_cast<ptrdiff_t>(next));
    inbox.insert(inbox.end(), own_.begin(), own_.end());
    own_.clear();
    counts_[slot] += inbox.size();
    active_[slot * words_ + device / 64] |= uint64_t{1} << (device % 64);
    return !stopped;
  }

  // Stable. By counting where there are many.
  template <class Before>
  void sort(std::vector<Event>& events, Before comes_before) {
    if (events.size() > kFew) {
      ends_.fill(0);
      const Time start = static_cast<Time>(window_ * length_);
      for (const Event& event : events) ++ends_[static_cast<size_t>(event.at - start)];
      uint32_t sum = 0;
      for (uint32_t& end : ends_) end = std::exchange(sum, sum + end);
      sorted_.resize(events.size());
      for (const Event& event : events) sorted_[ends_[static_cast<size_t>(event.at - start)]++] = event;
      events.swap(sorted_);
    }
    for (size_t i = 1; i < events.size(); ++i) {
      if (!comes_before(events[i], events[i - 1])) continue;
      const Event event = events[i];
      size_t place = i;
      for (; place > 0 && comes_before(event, events[place - 1]); --place) events[place] = events[place - 1];
      events[place] = event;
    }
  }

  uint32_t devices_;
  uint32_t words_;
  uint64_t length_;         // of a window, ns
  uint64_t window_ = 0;     // the present one, counted from time 0
  bool under_way_ = false;  // a device is living through it
  uint64_t events_ = 0;
  std::vector<uint32_t> list_;               // devices with anything in the present window
  std::vector<Event> own_;                   // what that device wants to do in it: a heap
  std::vector<std::vector<Event>> inboxes_;  // by slot and device
  std::vector<uint64_t> active_;             // by slot: which inboxes have anything
  std::array<uint64_t, kSlots> counts_{};    // by slot: how much they have
  std::vector<Event> far_;                   // what lies beyond the slots: a heap
  std::array<uint32_t, kLongest> ends_{};
  std::vector<Event> sorted_;
};

}  // namespace weir
