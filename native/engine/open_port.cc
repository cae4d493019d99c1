#include "engine/open_port.h"

#include <iterator>
#include <utility>

#include "engine/config.h"
#include "io/af_packet.h"
#include "io/af_xdp.h"
#include "io/live_port.h"
#include "io/mixed_port.h"
#include "io/tap_port.h"

namespace weir {
namespace {

// A NIC takes super-frames apart where they lie.
std::unique_ptr<PacketPort> open_af_packet(PortOptions options, const PortConfig&, const PortClock& clock, LentPackets& packets) {
  options.promiscuous = options.receive;
  return std::make_unique<AfPacketPort>(options, clock, options.roce_only ? nullptr : &packets.umem.pool());
}

std::unique_ptr<PacketPort> open_af_xdp(PortOptions options, const PortConfig& config, const PortClock& clock,
                                        LentPackets& packets) {
  options.stamp = config.rate > 0;
  options.promiscuous = !options.roce_only;
  return std::make_unique<AfXdpPort>(options, packets.umem, clock);
}

std::unique_ptr<PacketPort> open_live(std::unique_ptr<PacketPort> inner, const PortOptions& options, const PortClock& clock,
                                      LentPackets& packets) {
  if (!packets.live) packets.live = std::make_unique<LiveTransmit>(packets.memory);
  return std::make_unique<LivePort>(std::move(inner), options, *packets.live, packets.umem, clock);
}

std::unique_ptr<PacketPort> open_tap(PortOptions options, const PortConfig&, const PortClock& clock, LentPackets&) {
  return std::make_unique<TapPort>(options, clock);
}

struct Entry {
  std::unique_ptr<PacketPort> (*open)(PortOptions, const PortConfig&, const PortClock&, LentPackets&);
  bool lends_packets = false;
};
constexpr Entry kBackends[] = {
    {open_af_packet}, {open_af_xdp, true}, {nullptr, true}, {open_tap}};  // live frames leave by a port that receives
static_assert(std::size(kBackends) == words_of(Backend{}).size());

const Entry& entry(Backend backend) { return kBackends[static_cast<size_t>(backend)]; }

}  // namespace

bool lends_packets(const PortConfig& config) {
  return entry(config.receive_by).lends_packets || entry(config.transmit_by).lends_packets;
}

bool passes_offloads(const PortConfig& config) {
  const Backend by =
      config.transmit_by == Backend::live ? config.receive_by : config.transmit_by;  // for frames that do not suit live ones
  return config.offloads && by == Backend::af_packet;
}

bool sends_live(const PortConfig& config) { return config.transmit_by == Backend::live; }

std::unique_ptr<PacketPort> open_packet_port(const PortConfig& config, const PortClock& clock, LentPackets& packets) {
  // First the one that receives, which claims the interface.
  PortOptions options = config;
  std::unique_ptr<PacketPort> in = entry(config.receive_by).open(options, config, clock, packets);
  if (config.transmit_by == Backend::live) return open_live(std::move(in), options, clock, packets);
  if (config.receive_by == config.transmit_by) return in;
  options.receive = false;
  options.owner.clear();
  return std::make_unique<MixedPort>(std::move(in), entry(config.transmit_by).open(options, config, clock, packets));
}

}  // namespace weir
