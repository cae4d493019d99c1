#include "endpoint/network_traffic.h"

#include <cstring>
#include <span>

#include "base/native_error.h"
#include "endpoint/nic_parameters.h"

namespace weir {

FlowLayout::FlowLayout(const NetworkTraffic& traffic, size_t nics) : traffic_(traffic), flows_(nics) {
  places_.reserve(2 * traffic.flows.size());
  for (uint32_t number = 0; number < traffic.flows.size(); ++number) {
    const NetworkFlow& flow = traffic.flows[number];
    require(flow.from < nics && flow.to < nics && flow.from != flow.to, "flows.to", "a flow has two hosts");
    require(flow.sizes_first <= traffic.sizes.size() && flow.sizes_count <= traffic.sizes.size() - flow.sizes_first,
            "flows.sizes_first", "sizes of messages are in `sizes`");
    for (const uint32_t nic : {flow.from, flow.to}) {
      places_.push_back({nic, static_cast<uint32_t>(flows_[nic].size())});
      flows_[nic].push_back(number);
    }
  }
}

std::vector<QueuePairParameters> FlowLayout::queue_pairs(uint32_t nic, const std::vector<NetworkNic>& nics,
                                                         uint64_t first_mac) const {
  std::vector<QueuePairParameters> pairs;
  pairs.reserve(flows_of(nic).size());
  for (const uint32_t number : flows_of(nic)) {
    const NetworkFlow& flow = traffic_.flows[number];
    const bool sends = flow.from == nic;
    const Place peer = sends ? receiver(number) : sender(number);
    const NetworkNic& self = nics[nic];
    QueuePairParameters& qp = pairs.emplace_back();
    qp.remote_qpn = kFirstStreamQpn + peer.index;
    qp.path.destination_mac = self.gateway_mac != 0 ? self.gateway_mac : first_mac + peer.nic;
    qp.path.source_mac = first_mac + nic;
    std::memcpy(qp.path.source_ip, self.ip, sizeof self.ip);
    std::memcpy(qp.path.destination_ip, nics[peer.nic].ip, sizeof self.ip);
    qp.path.dscp = flow.dscp;
    qp.path.ecn = 2;
    qp.path.udp_source_port = flow.udp_source_port;
    qp.priority = flow.priority;
    qp.stream = flow.stream;
    qp.reliable = flow.reliable;
    qp.on_demand = flow.on_demand;
    qp.transport = traffic_.transport;
    qp.sizes = std::span(traffic_.sizes).subspan(flow.sizes_first, flow.sizes_count);
    qp.outstanding = flow.outstanding;
    if (sends) {
      qp.rate_cap = flow.rate_cap;
      qp.application = flow.application;
      if (flow.source_mac != 0) qp.path.source_mac = flow.source_mac;
    } else {
      qp.peer_start = flow.start;
    }
    if (sends != qp.reads()) qp.start = flow.start;
    if (sends || qp.reads()) qp.stop = flow.stop;
  }
  return pairs;
}

}  // namespace weir
