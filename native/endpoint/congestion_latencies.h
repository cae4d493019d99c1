// Latencies with which a NIC on a real host answers congestion, in time of the clock on the wall. A NIC lives in event time, in
// which it is never late; so its driver says when a turn began, and latencies count up to that: the host carries out what a turn
// decides right behind it. They count from the arrival of the packet, as its stamp tells.
#pragma once

#include <algorithm>

#include "base/histogram.h"
#include "base/types.h"

namespace weir {

struct CongestionLatencies {
  Time now = 0;                  // when the turn began
  Histogram ecn_to_cnp;          // ns from a marked packet to the CNP for it; of several that one CNP answers, from the first
  Histogram cnp_to_rate_change;  // ns from a CNP to the cut that it causes; of several before one cut, from the first

  // A CNP goes out for a packet that arrived marked at `arrived`.
  void answered(Time arrived) { ecn_to_cnp.record(static_cast<uint64_t>(std::max<Time>(0, now - arrived))); }
  // A CNP that came at `arrived` cuts the rate at `at`, or in this turn if that is later.
  void cut(Time arrived, Time at) {
    cnp_to_rate_change.record(static_cast<uint64_t>(std::max<Time>(0, std::max(now, at) - arrived)));
  }
};

}  // namespace weir
