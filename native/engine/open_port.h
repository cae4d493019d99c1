// The I/O backends there are, and the way from a port's configuration to its packet port. Another backend is a file pair in io/,
// a name here, and an entry in open_port.cc.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "io/live_transmit.h"
#include "io/packet_port.h"
#include "io/umem.h"
#include "wire/packet_pool.h"

namespace weir {

// `live` transmits only; `tap` makes its interface.
enum class Backend : uint8_t { af_packet, af_xdp, live, tap };
constexpr auto words_of(Backend) { return std::array{"af_packet", "af_xdp", "live", "tap"}; }

struct PortConfig;

// A worker's packets, for ports that let the kernel read and write frames in them.
struct LentPackets {
  LentPackets(PacketMemory& memory, PacketPool& pool) : memory(memory), umem(memory, pool) {}
  PacketMemory& memory;
  Umem umem;
  std::unique_ptr<LiveTransmit> live;  // made by the first port that transmits so
};

// Whether a backend of the port is of that kind. Then the worker's packets have the shape of lent_shape().
bool lends_packets(const PortConfig& config);
// Whether super-frames and partial checksums leave by it as they are.
bool passes_offloads(const PortConfig& config);
// Whether it transmits live frames. Then the bytes of the worker's packets are those of map_packet_bytes().
bool sends_live(const PortConfig& config);
inline PacketShape lent_shape(uint32_t count, uint32_t frame_bytes) { return Umem::shape(count, frame_bytes); }

// Throws NativeError.
std::unique_ptr<PacketPort> open_packet_port(const PortConfig& config, const PortClock& clock, LentPackets& packets);

}  // namespace weir
