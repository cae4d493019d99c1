// Traffic of the data plane benchmarks, as commands of weir_bench: a sender, a counter, a stop watch. Each is a process of its
// own, in a scheduling group of its own with the highest weight that the host gives, pinned to a CPU. NAMESPACE is a path, CPU
// may be -1.
//
//   send SOURCE NAMESPACE INTERFACE CPU FROM TO SIZE SECONDS RATE
//       Sends RoCEv2 frames of SIZE bytes, without FCS, from one Ethernet address to another: ECT(0), DSCP 26, one flow. SOURCE
//       is "xdp" (LiveFrames) or "packet" (sendmmsg past the queueing discipline). RATE 0 is as fast as it goes. Prints "sent
//       SECONDS".
//   count NAMESPACE INTERFACE SINK
//       Drops and counts frames that come in: SINK is "xdp" (in the driver) or "packet" (as sk_buffs). For each line on standard
//       input prints "count ns"; ends with the input.
//   arrivals NAMESPACE INTERFACE FIRST_QPN QUEUE_PAIRS STAMPS FILE
//       Works as count, and keeps when RoCEv2 packets came (ArrivalRecorder). At the end FILE has, as words of 64 bits, a
//       QueuePairArrivals for each queue pair, and then the first STAMPS times.
//   latency NAMESPACE INTERFACE NAMESPACE INTERFACE CPU FROM TO SECONDS RATE
//       Sends frames of 64 bytes by one interface and waits for each at another, by one clock, spinning. Prints
//       "sent lost p50 p90 p99 p99.9 max" in us, from before send() to after recv(). A frame is lost after 100 ms.
//   cnp NAMESPACE INTERFACE CPU FROM TO SECONDS RATE
//       The same for data packets with CE to queue pair 0x11, from before send() of each to after recv() of a CNP.
#pragma once

#include <string>
#include <vector>

namespace weir::bench {

using Arguments = std::vector<std::string>;

// The command's name is the first argument. Returns the exit status; throws NativeError, std::logic_error for bad arguments.
int run_traffic(const Arguments& arguments);

}  // namespace weir::bench
