#include "engine/open_port.h"

#include <iterator>
#include <utility>

#include "engine/config.h"
#include "io/af_packet.h"
#include "io/af_xdp.h"
#include "io/mixed_port.h"

namespace weir {
namespace {

template <class Options>
Options options_for(const PortConfig& config, bool receive) {
  Options options;
  options.receive = receive;
  if (receive) options.owner = config.owner;
  options.interface = config.interface;
  options.namespace_fd = config.namespace_fd;
  options.namespace_path = config.namespace_path;
  options.slot_bytes = config.slot_bytes;
  options.roce_only = config.roce_only;
  return options;
}

// `receive`: frames come in by this backend, and not only go out.
std::unique_ptr<PacketPort> open_af_packet(const PortConfig& config, bool receive, const PortClock& clock, LentPackets&) {
  AfPacketOptions options = options_for<AfPacketOptions>(config, receive);
  options.receive_slots = config.receive_slots;
  options.promiscuous = receive;
  options.offloads = config.offloads;
  options.echo_address = config.arp_address;
  options.echo_ipv6 = config.echo_ipv6;
  return std::make_unique<AfPacketPort>(options, clock);
}

std::unique_ptr<PacketPort> open_af_xdp(const PortConfig& config, bool receive, const PortClock& clock, LentPackets& packets) {
  AfXdpOptions options = options_for<AfXdpOptions>(config, receive);
  options.ring = config.ring;
  options.generic = config.xdp_generic;
  options.stamp = config.rate > 0;
  options.promiscuous = !config.roce_only;
  options.arp_address = config.arp_address;
  return std::make_unique<AfXdpPort>(options, packets, clock);
}

struct Entry {
  std::unique_ptr<PacketPort> (*open)(const PortConfig&, bool receive, const PortClock&, LentPackets&);
  bool lends_packets = false;
};
constexpr Entry kBackends[] = {{open_af_packet}, {open_af_xdp, true}};
static_assert(std::size(kBackends) == kBackendNames.size());

const Entry& entry(Backend backend) { return kBackends[static_cast<size_t>(backend)]; }

}  // namespace

bool lends_packets(const PortConfig& config) {
  return entry(config.receive).lends_packets || entry(config.transmit).lends_packets;
}

std::unique_ptr<PacketPort> open_packet_port(const PortConfig& config, const PortClock& clock, LentPackets& packets) {
  // First the one that receives, which claims the interface.
  std::unique_ptr<PacketPort> in = entry(config.receive).open(config, true, clock, packets);
  if (config.receive == config.transmit) return in;
  return std::make_unique<MixedPort>(std::move(in), entry(config.transmit).open(config, false, clock, packets));
}

}  // namespace weir
