// Times at which RoCEv2 packets come in by an interface, by the kernel's clock, at its first hook behind the driver; they are
// dropped there. On a veth that is on the sender's CPU, within the system call that sends.
#pragma once

#include <cstdint>
#include <vector>

#include "io/network_namespace.h"

namespace weir::bench {

// CLOCK_MONOTONIC ns. `packets` may be 0.
struct QueuePairArrivals {
  uint64_t first;
  uint64_t last;
  uint64_t packets;
  uint64_t first_psn;
  uint64_t last_psn;
};

// Knows untagged IPv4 without options only. Packets that come on several CPUs at a time are not counted right.
class ArrivalRecorder {
 public:
  // The interface is of this thread's network namespace. Keeps the times of the first `stamps` packets of all, and a summary for
  // each destination from `first_qpn` on.
  ArrivalRecorder(int interface_index, uint32_t first_qpn, uint32_t queue_pairs, uint32_t stamps);
  uint64_t count() const;
  std::vector<QueuePairArrivals> queue_pairs() const;
  std::vector<uint64_t> stamps() const;

 private:
  uint32_t queue_pairs_;
  uint32_t stamps_;
  Descriptor count_map_;
  Descriptor stamp_map_;
  Descriptor pair_map_;
  Descriptor program_;
  Descriptor link_;
};

}  // namespace weir::bench
