// Which queue of an egress port sends next: strict priorities first, the rest by deficit weighted round robin (ETS,
// IEEE 802.1Q clause 37; DWRR, Shreedhar and Varghese 1995). Paused priorities keep their place and their deficit.
#pragma once

#include <array>
#include <cstdint>

#include "base/native_error.h"
#include "base/types.h"

namespace weir {

struct SchedulerParameters {
  uint8_t strict = 1 << 6;                                            // mask; the highest numbered sends first
  std::array<uint32_t, kPriorities> weights{1, 1, 1, 1, 1, 1, 1, 1};  // of the others; 1..100, relative
};

// Throws NativeError INVALID_CONFIG. A queue without weight would never be served, and two such queues would be looked at for
// ever.
inline void check(const SchedulerParameters& p) {
  for (const uint32_t weight : p.weights) require(weight >= 1 && weight <= 100, "scheduler", "weights must be between 1 and 100");
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
