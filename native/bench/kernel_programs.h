// The two BPF programs of the benchmarks, put together from instructions and loaded by bpf(2) alone. They need root in the
// initial user namespace.
#pragma once

#include <cstdint>
#include <span>

#include "base/types.h"
#include "io/network_namespace.h"

namespace weir::bench {

// A source that costs the sending side next to nothing: the kernel runs an XDP program over and over on frames of its own
// (BPF_PROG_RUN with live frames, Linux 5.18), which redirects them into an interface. A veth takes them if its peer has NAPI:
// GRO switched on, or an XDP program.
class LiveFrames {
 public:
  // Frames leave by the interface of this thread's network namespace. `rate`: frames/s, 0 is as fast as it goes. A call that
  // comes late makes up for at most a millisecond.
  LiveFrames(int interface_index, double rate);
  // Sends copies of `frame` until `end` (CLOCK_MONOTONIC); returns how many. Uses SIGALRM, which ends the system call: each call
  // begins and ends with some 10 ms in which nothing is sent.
  uint64_t run(std::span<const uint8_t> frame, Time end);

 private:
  struct State {  // the program's, in a map of one element
    uint64_t next;
    uint64_t gap;
    uint64_t sent;
  };
  Descriptor map_;
  Descriptor program_;
};

// Counts and drops whatever comes in by an interface: at its first hook behind the driver (tcx ingress, Linux 6.6), or in the
// driver, by an XDP program.
class DropCounter {
 public:
  // The interface is of this thread's network namespace. The program is gone with the object.
  DropCounter(int interface_index, bool xdp);
  uint64_t count() const;

 private:
  Descriptor map_;
  Descriptor program_;
  Descriptor link_;
};

}  // namespace weir::bench
