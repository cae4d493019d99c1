// The I/O backends there are, and the way from a port's configuration to its packet port. Another backend is a file pair in io/,
// a name here, and an entry in open_port.cc.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>

#include "io/packet_port.h"
#include "io/umem.h"

namespace weir {

enum class Backend : uint8_t { af_packet, af_xdp };
inline constexpr std::initializer_list<const char*> kBackendNames = {"af_packet", "af_xdp"};

struct PortConfig;

// A worker's packets, for ports that let the kernel read and write frames in them.
using LentPackets = Umem;

// Whether a backend of the port is of that kind. Then the worker's packets have the shape of lent_shape().
bool lends_packets(const PortConfig& config);
inline PacketShape lent_shape(uint32_t count, uint32_t frame_bytes) { return Umem::shape(count, frame_bytes); }

// Throws NativeError.
std::unique_ptr<PacketPort> open_packet_port(const PortConfig& config, const PortClock& clock, LentPackets& packets);

}  // namespace weir
