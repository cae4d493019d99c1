// The clock of a worker and its ports: CLOCK_MONOTONIC, read once in a turn, and how far CLOCK_REALTIME is from it.
#pragma once

#include "base/types.h"
#include "io/packet_port.h"

namespace weir {

// CLOCK_MONOTONIC, ns.
Time monotonic_now();

class WorkerClock {
 public:
  WorkerClock() { clock_.read = monotonic_now; }
  void refresh();
  Time now() const { return clock_.now; }
  const PortClock& of_ports() const { return clock_; }

 private:
  PortClock clock_;
  Time offset_checked_ = 0;
};

}  // namespace weir
