// A worker's thread waits between two turns as its configuration's Polling says. Without load it sleeps on its descriptors
// until the next deadline, unless it polls busily.
#pragma once

#include <poll.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/types.h"
#include "engine/config.h"
#include "engine/counter_block.h"
#include "engine/waker.h"
#include "engine/worker_devices.h"
#include "io/link_news.h"

namespace weir {

class WaitPolicy {
 public:
  // All of these must outlive it.
  WaitPolicy(const WorkerConfig& config, WorkerDevices& devices, CounterBlock& counters, LinkNews& link_news, Waker& waker)
      : config_(config), devices_(devices), counters_(counters), link_news_(link_news), waker_(waker) {}

  // Waits for `deadline` at most. `frames`: seen so far; `quiet`: time since the last. `told`: whether the counters have all that
  // was counted. Whenever it waits others may turn the loop, and `turning`, which it is given locked, is so no more.
  void wait(Time now, Time deadline, uint64_t frames, Time quiet, bool told, std::unique_lock<std::mutex>& turning);
  // Ends a sleep whoever turns the loop next: the sleep is nobody's lateness, and nothing was counted in it. Returns how long it
  // was, if it was one. With `turning` locked, as a turn is.
  std::optional<Time> end_sleep(Time now);
  bool sleeps() const { return sleeps_from_ != 0; }
  // Waits without `turning`: nobody's work waits for this, but what was asked for between two turns.
  void wait_for_ring(Time duration);
  // A turn has come to its end.
  void note_super_frames(Time now);
  // Descriptors of ports may have changed.
  void forget_descriptors() { descriptors_are_old_ = true; }

 private:
  void sleep_until(Time deadline, Time now, bool told, std::unique_lock<std::mutex>& turning);
  void yield(Time now, std::unique_lock<std::mutex>& turning);
  bool comes_little(Time now, uint64_t frames);
  bool in_bulk(Time now) const;
  bool work_waits() const;
  void gather_descriptors();

  const WorkerConfig& config_;
  WorkerDevices& devices_;
  CounterBlock& counters_;
  LinkNews& link_news_;
  Waker& waker_;
  Time napped_ = 0;         // spinning: when its last nap was to end
  Time shares_until_ = 0;   // adaptive, and in bulk: with another thread of this CPU
  uint64_t bulk_seen_ = 0;  // super-frames ...
  Time bulk_at_ = 0;        // ... the last of which came then ...
  Time bulk_gap_ = kNever;  // ... and so much later than the one before
  Time counted_from_ = 0;   // prompt: when this quantum began
  uint64_t counted_ = 0;
  bool little_ = true;               // true for the last quantum
  std::vector<pollfd> descriptors_;  // the thread's own
  bool descriptors_are_old_ = true;
  Time sleeps_from_ = 0;  // time since when nobody has turned the loop, for want of load; 0: somebody does
  bool holds_ = false;    // the counters, meanwhile
};

}  // namespace weir
