// Chooses which queue of an egress port sends next: strict priorities first, the rest by deficit weighted round robin (ETS, IEEE
// 802.1Q clause 37; DWRR, Shreedhar and Varghese 1995). Paused priorities keep their place and their deficit.
#pragma once

#include <array>
#include <cstdint>

#include "base/describe.h"
#include "base/types.h"

namespace weir {

struct SchedulerParameters {
  uint8_t strict = 1 << 6;
  std::array<uint32_t, kPriorities> weights{1, 1, 1, 1, 1, 1, 1, 1};
};
void describe(auto& v, Of<SchedulerParameters> auto& p) {
  v.type("NativeScheduler", "Which queue of a port sends next.");
  v("strict", p.strict, field::any("Mask of priorities; the highest numbered sends first."));
  // A queue without weight would never be served, and two such queues would be looked at for ever.
  v("weights", p.weights, field::within(1, 100, "Of the others, by priority; relative."));
}

class Scheduler {
 public:
  // `parameters` must outlive this object, and always pass check().
  void configure(const SchedulerParameters& parameters) { parameters_ = &parameters; }

  // Picks among `backlogged` queues less those `paused`, knowing the length of each one's first frame in wire bytes.
  // Returns the priority, whose deficit is charged, or -1 if none may send.
  int pick(uint8_t backlogged, uint8_t paused, const std::array<uint32_t, kPriorities>& head_bytes);

 private:
  // One visit's credit per unit of weight. At least the smallest frame; a frame larger than its queue's credit simply
  // takes several rounds.
  static constexpr uint32_t kQuantum = 256;

  const SchedulerParameters* parameters_ = nullptr;
  std::array<uint32_t, kPriorities> deficit_{};
  int current_ = 0;
  bool credited_ = false;
};

}  // namespace weir
