// Data packets of flows that are in queues and on links.
#pragma once

#include <cstdint>
#include <vector>

#include "endpoint/network_traffic.h"
#include "simulation/config.h"
#include "simulation/fabric.h"

namespace weir {

// By flow. Allocates.
std::vector<uint32_t> packets_under_way(const Fabric& fabric, const SimulationConfig& config, const FlowLayout& layout);

}  // namespace weir
