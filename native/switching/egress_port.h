// An egress port of the switch: its queues, the choice among them, and the link that they share.
//
// At most one frame is being serialised, and it is picked when the link falls free, so that priorities, pauses and marks act at
// frame boundaries. A port without a rate (0) sends at once. A queue's length does not count the frame being serialised (as in
// ns-3).
//
// A link is as fast as the host behind it. While that has more than kMostUnsent of picked frames to take, nothing is picked
// there, a PFC frame neither: frames wait in their queues, where thresholds, limits, marks and pauses see them. Beyond that
// may be one frame; on a link with a rate, the frames that it carries from one set_unsent() to the next; and on one without,
// frames that meet no queue meanwhile.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>

#include "base/fetch.h"
#include "base/histogram.h"
#include "base/random.h"
#include "base/types.h"
#include "congestion/red_marker.h"
#include "link/pacer.h"
#include "link/pfc.h"
#include "link/scheduler.h"
#include "link/serializer.h"
#include "switching/counters.h"
#include "switching/switch_parameters.h"
#include "wire/packet_pool.h"

namespace weir {

class EgressPort {
 public:
  // Fields are in the order of use, for the caches: a simulated fabric has thousands of ports.
  struct alignas(64) Queue {
    SwitchPriorityCounters counters;
    PacketQueue packets;
    Time since = 0;  // when the length last changed
    int64_t peak = 0;
    std::unique_ptr<Histogram> distribution;
    RedMarker marker;

    // The queue has had `bytes` up to now.
    void note_length(Time now, int64_t bytes, bool keep) {
      if (now > since && (distribution != nullptr || keep)) record_length(now, bytes);
    }

   private:
    void record_length(Time now, int64_t bytes);
  };

  // `parameters` must outlive it.
  void configure(Time now, const SwitchParameters& parameters, size_t number);

  uint16_t number() const { return number_; }
  const SwitchParameters::Port& parameters() const { return *parameters_; }
  Queue& queue(int priority) { return queues_[static_cast<size_t>(priority)]; }
  const Queue& queue(int priority) const { return queues_[static_cast<size_t>(priority)]; }
  std::array<Queue, kPriorities>& queues() { return queues_; }

  // Whether a frame of `length` bytes, `header` of them before the IP packet, may leave here.
  bool fits(uint32_t length, uint32_t header) const { return length <= mtu_ + header; }
  // Whether a queue has a limit of its own to what it holds.
  bool has_limit(int priority) const { return (waits_.bounded >> priority & 1) != 0; }
  // Whether a frame that comes now would be queued only to be picked in the same instant. Queues must not have limits.
  bool open(Time now) const {
    return !busy(now) && std::bit_cast<uint64_t>(waits_) == 0 && (pfc.owed() | pause.paused_mask()) == 0;
  }

  void push(PacketPool& pool, PacketId id, int priority) {
    queue(priority).packets.push(pool, id);
    waits_.backlogged = static_cast<uint8_t>(waits_.backlogged | 1u << priority);
  }
  // The priority that sends next, or -1: everything is paused, limited or empty.
  int pick(Time now, const PacketPool& pool);
  // The first frame of a queue, which has been picked.
  PacketId pop(PacketPool& pool, int priority) {
    PacketQueue& packets = queue(priority).packets;
    const PacketId id = packets.pop(pool);
    if (packets.empty()) {
      waits_.backlogged = static_cast<uint8_t>(waits_.backlogged & ~(1u << priority));
    } else {
      __builtin_prefetch(&pool[packets.front()], 1);
    }
    return id;
  }
  // The queue's rate limit takes a frame of `length` bytes into account.
  void charge(Time now, int priority, uint32_t length) {
    const auto p = static_cast<size_t>(priority);
    if ((waits_.limited >> priority & 1) != 0) limiters_[p].sent(now, wire_bytes(length), rates_[p]);
  }
  // Whether marking goes by an average, so that it has to see every frame.
  bool averages() const { return averages_; }
  // Marks the frame if its queue, which has `queue_bytes` before it, is congested.
  void mark(Packet& packet, int64_t queue_bytes, Random& random) {
    Queue& q = queues_[packet.priority];
    const bool congested = q.marker.mark(static_cast<uint64_t>(queue_bytes), random);
    if (!congested || packet.meta.ecn == 0 || packet.meta.ecn == 3) return;
    packet.meta.ecn = 3;
    packet.meta.ecn_changed = true;
    ++q.counters.wred_ecn_marked_packets;
  }

  bool busy(Time now) const { return link_.busy_until() > now; }
  bool held_back() const { return waits_.held_back != 0; }
  // Puts a frame of `length` bytes on the link; returns when its last bit has left.
  Time serialize(Time now, uint32_t length) {
    const uint32_t bytes = wire_bytes(length);
    sent_ += bytes;
    return link_.finish(now, bytes);
  }
  // Whether packets are told of this port, and how many bytes it has put on the link; wraps.
  bool writes_telemetry() const { return writes_telemetry_; }
  uint32_t sent() const { return sent_; }
  // A frame of `length` bytes was picked on a link that took no time for it.
  void add_unsent(uint32_t length) {
    unsent_ += length;
    if (unsent_ > kMostUnsent) waits_.held_back = 1;
  }
  // So many bytes of picked frames wait for the host now. True if that lets the port go on.
  bool set_unsent(uint32_t bytes) {
    const bool waited = waits_.held_back != 0;
    unsent_ = bytes;
    waits_.held_back = bytes > kMostUnsent ? 1 : 0;
    return waited && waits_.held_back == 0;
  }

  // Hints for the caches: something is going to happen here, to frames of a priority.
  WEIR_FETCHES void fetch() const {
    __builtin_prefetch(&link_, 1);
    __builtin_prefetch(&pfc, 1);
  }
  WEIR_FETCHES void fetch(uint8_t priority) const {
    fetch();
    __builtin_prefetch(&queues_[priority].counters, 1);
  }
  // Does what falls due here by now.
  void advance(Time now) {
    pause.advance(now);
    pfc.advance(now);
  }
  // When there is next something to do, or kNever; and the same where nothing waits here.
  Time next_wake(Time now) const;
  Time next_wake() const { return std::min(pfc.next_deadline(), watch_at_); }
  // Somebody wants to look at the port then.
  void watch(Time at) { watch_at_ = at; }
  // Priorities whose frames are not to leave here.
  void set_closed(uint8_t priorities) { waits_.closed = priorities; }
  bool closed(int priority) const { return (waits_.closed >> priority & 1) != 0; }
  uint8_t backlogged_mask() const { return waits_.backlogged; }
  // True if that is not what the driver was last asked for.
  bool changes_wake(Time at) {
    if (wakes_ == at) return false;
    wakes_ = at;
    return true;
  }
  // Whether the driver comes for what it was last asked for.
  bool woken(Time at) {
    if (wakes_ != at) return false;
    wakes_ = kNever;
    return true;
  }
  // Whether the driver would come too late for a frame that waits for the one on the link.
  bool wakes_late() const { return wakes_ > link_.busy_until(); }
  Time free_at(Time now) const { return std::max(now, link_.busy_until()); }

 private:
  uint8_t limited_mask(Time now) const;
  Time next_release(Time now) const;

  Serializer link_;
  Time wakes_ = kNever;  // time for which the driver was asked
  Time watch_at_ = kNever;
  uint32_t mtu_ = 0;
  // Bytes that wait for the host, at most; on a link with a rate, those that did when it was last said.
  uint32_t unsent_ = 0;
  uint16_t number_ = 0;
  bool averages_ = false;
  bool writes_telemetry_ = false;
  uint32_t sent_ = 0;
  // Reasons why a frame may have to wait; asked for all at once.
  struct alignas(8) Waits {
    uint8_t backlogged = 0;  // mask of queues with frames
    uint8_t limited = 0;     // mask of queues with a rate limit
    uint8_t bounded = 0;     // mask of queues with a limit of their own to what they hold
    uint8_t held_back = 0;   // 1 while the host has too much to take
    uint8_t closed = 0;      // mask of queues that take no frames
    std::array<uint8_t, 3> unused{};
  } waits_;
  const SwitchParameters::Port* parameters_ = nullptr;

 public:
  // Pauses that the peer asks of this port, and is asked for. The fields that every frame asks of both lie where they meet, in
  // one cache line.
  alignas(64) PauseState pause;
  PfcSender pfc;

 private:
  Scheduler scheduler_;
  std::array<Rate, kPriorities> rates_{};    // rates of the limiters
  std::array<Pacer, kPriorities> limiters_;  // when a limited queue may send again
  std::array<Queue, kPriorities> queues_;
};

}  // namespace weir
