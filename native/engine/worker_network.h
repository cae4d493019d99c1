// The network of which a worker has some of the NICs, or all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/describe.h"
#include "endpoint/network_traffic.h"

namespace weir {

// NICs that the worker has not are of other workers, here or elsewhere.
struct WorkerNetwork : NetworkTraffic {
  std::vector<NetworkNic> nics;
  uint64_t first_mac = 0;
  std::vector<std::string> names;
};
void describe(auto& v, Of<WorkerNetwork> auto& network) {
  v.type("NativeWorkerNetwork", "The network that a worker's NICs are of, whose queue pairs the worker makes of the flows.");
  v.base(network.traffic());
  v("nics", network.nics, field::any("All of them, numbered from 0, with addresses in a row."));
  v("first_mac", network.first_mac, field::any("Address of number 0."));
  v("names", network.names, field::any("Of the flows, in counter labels."));
  v.rule(network.names.size() == network.flows.size(), "each flow has a name");
}

}  // namespace weir
