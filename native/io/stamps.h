// Converts the stamps of a packet socket, which are of the wall clock, to the worker's clock.
//
// Somebody may set the wall clock, by seconds or by years: a first synchronisation, a machine that is resumed. The offset between
// the two clocks (PortClock) is some ms old, so until it is measured anew stamps come out wrong by as much. Devices live by
// arrivals, and would wait for one that lies in the future. One thing is certain of a frame: it has come by now, and when
// everything had been read for the last time, it had not yet.
#pragma once

#include <cstdint>

#include "io/packet_port.h"

namespace weir {

class Stamps {
 public:
  // Frames may come while a burst is read: this much later than PortClock::now needs no look at the clock.
  static constexpr Time kBurst = 100 * kMicrosecond;
  // The kernel may stamp a frame so long before it can be read, where it is short of a CPU.
  static constexpr Time kKernelDelay = 100 * kMillisecond;
  // Errors beyond this are counted: what is left of them is how well the offset is known.
  static constexpr Time kError = kMillisecond;

  explicit Stamps(const PortClock& clock) : clock_(clock) {}

  // A burst is about to be read.
  void begin() { latest_ = 0; }
  Time convert(Time realtime) {
    const Time at = realtime + clock_.realtime_offset;
    if (at <= clock_.now + kBurst && at >= emptied_ - kKernelDelay) [[likely]]
      return at;
    return bounded(at);
  }
  // Nothing more is there to be read.
  void emptied() { emptied_ = clock_.now; }
  // Stamps that could not be right.
  uint64_t corrected() const { return corrected_; }

 private:
  Time bounded(Time at) {
    if (latest_ == 0) latest_ = clock_.read != nullptr ? clock_.read() : clock_.now;
    const Time right = std::clamp(at, std::min(emptied_, latest_), latest_);
    if (at - right > kError || right - at > kError) ++corrected_;
    return right;
  }

  const PortClock& clock_;
  Time latest_ = 0;   // the clock's time in this burst; 0: not looked at
  Time emptied_ = 0;  // INT64_MIN would overflow, and no clock is below 0
  uint64_t corrected_ = 0;
};

}  // namespace weir
