// When a queue pair may send its next packet, given a rate that changes while the packet waits.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace weir {

// After a packet of b wire bytes at rate R the next one is released b * 8 / R later (DCQCN section 3.3: "rate limiting is
// on a per-packet granularity"). The schedule is absolute: a packet that leaves late does not move the following ones,
// up to one gap of lateness; any lateness beyond that is lost, so that at most one packet is made up for and the bytes
// sent in any window of length w are at most R * w / 8 plus two packets.
//
// A fraction of a nanosecond is carried from gap to gap as a double: the long-run rate is R to within 1e-15.
class Pacer {
 public:
  // The earliest time, rounded up to a ns, at which the next packet may leave.
  Time release() const { return release_ + (fraction_ > 0 ? 1 : 0); }

  // A packet of `wire_bytes` left at `at`, at `rate` bit/s (0: no limit, no gap). A packet that goes ahead of its release
  // (a retransmission, say) is charged like any other.
  void sent(Time at, uint32_t wire_bytes, Rate rate) {
    rate_ = static_cast<double>(rate);
    if (rate == 0) return at < release() ? void() : reset(at);
    const double gap = static_cast<double>(wire_bytes) * 8e9 / rate_;
    const double lateness = static_cast<double>(at - release_) - fraction_;
    if (lateness >= gap) {
      release_ = at;
      fraction_ = 0;
    } else {
      add(gap);
    }
  }

  // The rate becomes `new_rate` (0: no limit) at `now`: the bits of the current gap that are still to pass do so at the new
  // rate, whether it is a cut or an increase. Nothing happens when the packet was already released by `now`.
  void rate_changed(Time now, Rate new_rate) {
    const double remaining = static_cast<double>(release_ - now) + fraction_;
    if (remaining > 0) {
      release_ = now;
      fraction_ = 0;
      if (new_rate != 0) add(remaining * rate_ / static_cast<double>(new_rate));
    }
    rate_ = static_cast<double>(new_rate);
  }

  // Forgets what was sent: the next packet may leave at `now`.
  void reset(Time now) {
    release_ = now;
    fraction_ = 0;
  }

 private:
  void add(double gap) {
    const double sum = fraction_ + gap;
    const Time whole = static_cast<Time>(sum);
    release_ += whole;
    fraction_ = sum - static_cast<double>(whole);
  }

  Time release_ = 0;     // the release time is release_ + fraction_
  double fraction_ = 0;  // [0, 1) ns
  double rate_ = 0;      // bit/s of the current gap
};

}  // namespace weir
