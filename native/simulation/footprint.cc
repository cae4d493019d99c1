#include "simulation/footprint.h"

#include "endpoint/flow.h"
#include "endpoint/queue_pair.h"
#include "endpoint/reliable_stream.h"
#include "endpoint/soft_nic.h"
#include "endpoint/stream_transport.h"
#include "simulation/config.h"
#include "simulation/partition.h"
#include "switching/soft_switch.h"

namespace weir {
namespace {

// Ratio of all resident memory to that of structs alone: the rest lies between them in pages and size classes, and in small
// vectors that they hold.
constexpr double kAround = 1.25;
// Places for events, by device: in each of 16 windows one of 12 bytes.
constexpr double kInboxes = 16 * 12;
// A route, in the configuration and in the switch.
constexpr double kRoute = 2 * sizeof(uint16_t);

}  // namespace

double footprint(const NetworkSize& size) {
  // Parameters are in the configuration and in the device. A link has two directions, one for each port; and counters are told as
  // doubles, twice at a time: as they are and as they were after the warm-up.
  constexpr double kTold = 2 * sizeof(double) / sizeof(uint64_t);
  constexpr double kPortCounters = sizeof(SwitchPortCounters) + kPriorities * sizeof(SwitchPriorityCounters);
  constexpr double kNicCounters = sizeof(NicCounters) + kPriorities * sizeof(NicPriorityCounters) + sizeof(TransportCounters);
  const double port = static_cast<double>(SoftSwitch::port_bytes()) + 2 * sizeof(SwitchParameters::Port) + sizeof(Direction) +
                      sizeof(SimulatedLink) + kTold * kPortCounters;
  const double device = 2 * sizeof(SwitchParameters) + sizeof(SoftSwitch) + kInboxes;
  const double nic =
      sizeof(SoftNic) + sizeof(FlowTable) + sizeof(SimulatedNic) + sizeof(Direction) + kInboxes + 4096 + kTold * kNicCounters;
  const double transport = size.reliable ? sizeof(ReliableStream) : sizeof(StreamTransport);
  const double flow = sizeof(NetworkFlow) + 2 * (sizeof(QueuePairParameters) + sizeof(QueuePair) + transport + sizeof(Flow)) +
                      2 * kTold * sizeof(QpCounters);
  return kAround * (size.ports * port + size.switches * device + size.hosts * nic + size.flows * flow) +
         size.switches * size.hosts * kRoute;
}

}  // namespace weir
