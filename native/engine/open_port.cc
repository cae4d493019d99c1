#include "engine/open_port.h"

#include <utility>

#include "io/af_packet.h"
#include "io/af_xdp.h"
#include "io/mixed_port.h"

namespace weir {
namespace {

template <class Options>
Options options_for(const PortConfig& config) {
  Options options;
  options.interface = config.interface;
  options.namespace_fd = config.namespace_fd;
  options.namespace_path = config.namespace_path;
  options.slot_bytes = config.slot_bytes;
  options.roce_only = config.roce_only;
  return options;
}

std::unique_ptr<PacketPort> open_af_packet(const PortConfig& config, const PortClock& clock) {
  AfPacketOptions options = options_for<AfPacketOptions>(config);
  options.receive = config.receive == Backend::af_packet;
  if (options.receive) options.owner = config.owner;
  options.receive_slots = config.receive_slots;
  options.promiscuous = options.receive;
  options.offloads = config.offloads;
  options.echo_address = config.arp_address;
  options.echo_ipv6 = config.echo_ipv6;
  return std::make_unique<AfPacketPort>(options, clock);
}

std::unique_ptr<PacketPort> open_af_xdp(const PortConfig& config, const PortClock& clock, Umem& umem) {
  AfXdpOptions options = options_for<AfXdpOptions>(config);
  options.receive = config.receive == Backend::af_xdp;
  if (options.receive) options.owner = config.owner;
  options.ring = config.ring;
  options.generic = config.xdp_mode == XdpMode::generic;
  options.stamp = config.rate > 0;
  options.promiscuous = !config.roce_only;
  options.arp_address = config.arp_address;
  return std::make_unique<AfXdpPort>(options, umem, clock);
}

}  // namespace

std::unique_ptr<PacketPort> open_packet_port(const PortConfig& config, const PortClock& clock, Umem* umem) {
  if (!config.uses_af_xdp()) return open_af_packet(config, clock);
  if (config.receive == config.transmit) return open_af_xdp(config, clock, *umem);
  // First the one that claims the interface.
  if (config.receive == Backend::af_packet) {
    std::unique_ptr<PacketPort> packet = open_af_packet(config, clock);
    return std::make_unique<MixedPort>(std::move(packet), open_af_xdp(config, clock, *umem));
  }
  std::unique_ptr<PacketPort> xdp = open_af_xdp(config, clock, *umem);
  return std::make_unique<MixedPort>(std::move(xdp), open_af_packet(config, clock));
}

}  // namespace weir
