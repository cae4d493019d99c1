#include "simulation/under_way.h"

#include <unordered_map>

#include "wire/bytes.h"
#include "wire/ip.h"

namespace weir {

std::vector<uint32_t> packets_under_way(const Fabric& fabric, const SimulationConfig& config, const FlowLayout& layout) {
  std::vector<uint32_t> packets(config.flows.size());
  // Packets on their way between routers have the address of the next one.
  std::unordered_map<uint32_t, uint32_t> nic_of_ip;
  for (uint32_t i = 0; i < config.nics.size(); ++i) {
    if (config.nics[i].gateway_mac != 0) nic_of_ip.emplace(load_be32(config.nics[i].ip), i);
  }
  fabric.each_packet([&](const Packet& packet, const uint8_t* headers) {
    if (packet.meta.kind != FrameKind::roce) return;
    uint64_t nic = packet.meta.destination_mac - config.nics[0].parameters.mac;
    if (!nic_of_ip.empty()) {
      const auto found = nic_of_ip.find(load_be32(headers + packet.meta.l3_offset + ip_source_offset(4) + ip_address_length(4)));
      if (found != nic_of_ip.end()) nic = found->second;
    }
    if (nic >= config.nics.size()) return;
    const uint32_t index = packet.meta.destination_qp - kFirstStreamQpn;
    const std::vector<uint32_t>& flows = layout.flows_of(static_cast<uint32_t>(nic));
    if (index >= flows.size()) return;
    // Packets to a sender are acknowledgements.
    const FlowLayout::Place receiver = layout.receiver(flows[index]);
    if (receiver.nic == nic && receiver.index == index) ++packets[flows[index]];
  });
  return packets;
}

}  // namespace weir
