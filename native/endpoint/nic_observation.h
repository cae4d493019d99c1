// A NIC is looked at: how fast its queue pairs may send, and counters that stand for time.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "endpoint/flows.h"

namespace weir {

class NicObservation {
 public:
  explicit NicObservation(Flows& flows) : flows_(flows) {}

  // State that holds a queue pair that sends, at `at`, for samples. If it is not held below its allowed rate, both rates are
  // that, and alpha is 0 unless it runs there.
  struct SenderSample {
    double rate;         // bit/s
    double target_rate;  // bit/s
    double alpha;
    double window;  // packets; 0 while it does not send, and of an algorithm that has none
  };
  SenderSample sender_sample(uint32_t index, Time at);
  // Whether it is the end of its stream whose congestion control rules: who sends the data, or who READs.
  bool controls(const QueuePairParameters& p) const { return p.reads() && flows_.nic().pulls() ? !p.serves() : p.sends_data(); }
  // The flow that congestion control holds a queue pair by, its group's or its own, caught up to `at`.
  const Flow& flow_at(uint32_t index, Time at);
  // Brings gauges and duration counters up to now.
  void settle_counters();

 private:
  static constexpr uint32_t kNone = NicState::kNone;

  NicState& nic() { return flows_.nic(); }

  Flows& flows_;
};

}  // namespace weir
