// Memory that a simulation takes before anything happens in it, from the sizes of its parts.
#pragma once

#include <cstdint>

#include "base/describe.h"

namespace weir {

// Number of each kind of part.
struct NetworkSize {
  double switches = 0;
  double ports = 0;
  double hosts = 0;
  double flows = 0;
  bool reliable = false;
};
void describe(auto& v, Of<NetworkSize> auto& size) {
  v.type("NativeNetworkSize", "How much there is of a network and its traffic.");
  v("switches", size.switches, field::any("With routes to all hosts."));
  v("ports", size.ports, field::any("Of all switches."));
  v("hosts", size.hosts, field::any("Each with a NIC."));
  v("flows", size.flows, field::any("With a queue pair at either end."));
  v("reliable", size.reliable, field::any("Which are reliable connections."));
}

// Bytes; what the allocator and short vectors add is reckoned in, see the definition.
double footprint(const NetworkSize& size);

}  // namespace weir
