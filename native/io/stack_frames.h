// Counts the frames of an interface that come to the kernel's own stack although its XDP program was to take them. A veth runs
// the program for none of the receive queues that it got after it was attached; the kernel tells of no such frame.
#pragma once

#include <cstdint>

#include "io/network_namespace.h"
#include "io/port_options.h"

namespace weir {

class StackFrames {
 public:
  // Counts all frames of the interface, or with roce_only RoCEv2 packets and MAC control frames, by a packet socket without a
  // protocol in its network namespace, which it closes. Throws NativeError.
  StackFrames(int socket, const PortOptions& options, int interface_index);

  // Frames since the beginning (system calls).
  uint64_t count();

 private:
  const Descriptor socket_;
  uint64_t count_ = 0;
};

}  // namespace weir
