// Statistics of a switch's queues beside its counters: distributions and peaks of their lengths.
#pragma once

#include <cstdint>

#include "base/histogram.h"
#include "switching/switch_state.h"

namespace weir {

class QueueStatistics {
 public:
  // `state` must outlive it.
  explicit QueueStatistics(SwitchState& state) : state_(state) {}

  // Queues that this is called for, before anything happens, keep their distribution; or all that ever hold a frame, which then
  // get it.
  void keep_distribution(uint16_t port, int priority);
  void keep_distributions() { state_.keeps_all = true; }
  bool keeps_distribution(uint16_t port, int priority) const {
    return state_.ports[port].egress.queue(priority).distribution != nullptr;
  }
  // Distribution of an egress queue's length over time, each length weighted by the ns it lasted, up to now(). Only when kept.
  const Histogram& distribution(uint16_t port, int priority);
  // `part` / `whole` of what such a distribution has come to since it was `before` come once more, and `before` has them as well.
  void repeat_distribution(uint16_t port, int priority, Histogram& before, uint64_t part, uint64_t whole);
  // Highest queue length since the last call.
  int64_t take_peak(uint16_t port, int priority);
  // Starts the distributions afresh: the warm-up is over.
  void reset_distributions();
  // Brings the duration counters (pauses) up to now().
  void settle_counters();

 private:
  SwitchState& state_;
};

}  // namespace weir
