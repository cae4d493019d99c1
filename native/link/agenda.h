// The driver of a device on the wire: what has left its ports until it is taken, and when the device wants to be woken.
//
//   run(until, device)   wakes the device for all that falls due, in the order of time
//   take(port, now)      the frames whose last bit has left by `now`, oldest first
//   next_deadline()      when to call run() and take() next, if nothing arrives
//
// The device is to be woken for what is due by then before it is told of anything at that time: run(at) comes before a frame that
// arrives at `at`. A simulator is a driver of its own kind (simulation/fabric.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/indexed_heap.h"
#include "base/types.h"
#include "link/driver.h"
#include "link/timing_wheel.h"
#include "wire/packet_pool.h"

namespace weir {

// A few wakes. At one time they come in the order of their numbers.
class WakeHeap {
 public:
  explicit WakeHeap(uint32_t entries) : heap_(entries) {}
  void schedule(uint32_t entry, Time at) {
    if (entry == under_way_) under_way_ = kNone;
    if (at == kNever) {
      heap_.remove(entry);
    } else {
      heap_.set(entry, at);
    }
  }
  Time next_deadline() const { return heap_.empty() ? kNever : heap_.top_key(); }
  // An entry stays where it is until it has been visited, for it will mostly be scheduled again.
  template <class Visit>
  void each_due(Time now, Visit visit) {
    while (!heap_.empty() && heap_.top_key() <= now) {
      const uint32_t entry = under_way_ = heap_.top();
      visit(entry, heap_.top_key());
      if (under_way_ == entry) heap_.remove(entry);
      under_way_ = kNone;
    }
  }

 private:
  static constexpr uint32_t kNone = IndexedHeap::kNone;

  IndexedHeap heap_;
  uint32_t under_way_ = kNone;
};

// `Wakes` is a WakeHeap, or a TimingWheel where a device has thousands of wakes. Allocates in the constructor only.
template <class Wakes>
class Agenda final : public Driver {
 public:
  // `pool` must outlive it, and holds all packets of the device. `wakes`: with an entry for everything the device may name.
  Agenda(PacketPool& pool, uint32_t ports, Wakes wakes) : pool_(pool), departing_(ports), wakes_(std::move(wakes)) {}

  void depart(uint16_t port, PacketId id, Time at) override {
    pool_[id].departs = at;
    departing_[port].push(pool_, id);
  }
  void wake(uint32_t what, Time at) override { wakes_.schedule(what, at); }
  Time quiet_until() const override { return std::min(ran_until_, next_wake() - 1); }

  // Calls device.wake(what, at) for everything that was asked for by `until`, also for what it asks for meanwhile.
  template <class Device>
  void run(Time until, Device& device) {
    ran_until_ = until;
    wakes_.each_due(until, [&](uint32_t what, Time at) { device.wake(what, at); });
  }
  // The oldest frame that has left `port`, the caller's from now on, or kNoPacket.
  PacketId take(uint16_t port, Time now) {
    PacketQueue& departing = departing_[port];
    return !departing.empty() && pool_[departing.front()].departs <= now ? departing.pop(pool_) : kNoPacket;
  }
  // kNever when there is neither a wake nor a frame on a link.
  Time next_deadline() const {
    Time next = next_wake();
    for (const PacketQueue& departing : departing_) {
      if (!departing.empty()) next = std::min(next, pool_[departing.front()].departs);
    }
    return next;
  }
  // Deadline of the next wake: frames on a link do not count.
  Time next_wake() const { return wakes_.next_deadline(); }
  const Wakes& wakes() const { return wakes_; }

 private:
  PacketPool& pool_;
  std::vector<PacketQueue> departing_;
  Wakes wakes_;
  Time ran_until_ = kAnyMoment;
};

}  // namespace weir
