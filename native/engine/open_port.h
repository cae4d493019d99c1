// From a port's configuration to the packet port of its backends.
#pragma once

#include <memory>

#include "engine/config.h"
#include "io/packet_port.h"
#include "io/umem.h"

namespace weir {

// `umem` is needed where config.uses_af_xdp(), else it may be null. Throws NativeError.
std::unique_ptr<PacketPort> open_packet_port(const PortConfig& config, const PortClock& clock, Umem* umem);

}  // namespace weir
