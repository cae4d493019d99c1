// Whether a network does the same in two stretches of time: what comes of it, as flows, queues and counters show it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "endpoint/network_traffic.h"
#include "simulation/fabric.h"

namespace weir {

// What has come of a network since its beginning; of distributions of queues, since they started afresh.
struct Measures {
  Time at = 0;
  std::vector<uint64_t> bytes;  // payload delivered, by flow
  double rates = 0;             // at which flows may send just now, together, bit/s
  uint64_t marks = 0;           // packets marked CE by switches
  uint64_t pauses = 0;          // PFC and PAUSE frames that switches and NICs have sent
  uint64_t drops = 0;           // frames dropped by switches and links, or trimmed
  double queues = 0;            // sum of the lengths of all queues whose distribution is kept, over time, bytes x ns
};

// Counters must be up to now.
Measures measure(Fabric& fabric, const FlowLayout& layout, size_t flows);

// A queue shorter than that, bytes, differs by less than a frame: lengths below it are alike.
inline constexpr double kShortQueue = 1'500;

// How much a stretch of time differs from another one, by which it was foretold; parts of what was foretold, 0: not at all.
struct Differences {
  double goodput = 0;  // of all flows together
  double shares = 0;   // by flow: sum of absolute differences over the sum
  double spread = 0;   // the same of flows in the order of their goodput, whichever they are
  double marks = 0;
  double pauses = 0;
  double drops = 0;
  double queues = 0;  // of the sum of the mean lengths of the queues
  // Standard deviation of a difference of counts by chance, were they of Poisson.
  double marks_chance = 0, pauses_chance = 0, drops_chance = 0;
};

class Stretch {
 public:
  Stretch(const Measures& from, const Measures& to) : from_(from), to_(to) {}

  Time length() const { return to_.at - from_.at; }
  // The other one is what was foretold. Neither may be empty.
  Differences from(const Stretch& foretold) const;

 private:
  const Measures& from_;
  const Measures& to_;
};

// Whether all of them are within `bound`. Counts may differ by twice what chance makes of them besides. Flows take turns in being
// fast without end: which one is does not count, and how unequal they are may differ by kSpread times the bound.
inline constexpr double kSpread = 8;
bool within(const Differences& differences, double bound);

}  // namespace weir
