// The traffic of a network: flows from one NIC to another. Each is a queue pair at either end, of the wire as in virtual time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/describe.h"
#include "base/types.h"
#include "endpoint/queue_pair.h"
#include "transport/message_stream.h"
#include "transport/queue_attributes.h"

namespace weir {

// A NIC as others send to it. MAC addresses are in a row, in the order of the NICs.
struct NetworkNic {
  uint8_t ip[4] = {};
  uint64_t gateway_mac = 0;  // 0: it is on one link with all others
};
void describe(auto& v, Of<NetworkNic> auto& nic) {
  v.type("NativeNetworkNic", "A NIC as others send to it.");
  v("ip", nic.ip, field::any("IPv4, network order."));
  v("gateway_mac", nic.gateway_mac,
    field::optional(field::any("Of the router to which it sends all frames; 0: to their destinations.")));
}

struct NetworkFlow {
  uint32_t from = 0;
  uint32_t to = 0;
  uint8_t priority = 3;
  uint8_t dscp = 26;
  uint16_t udp_source_port = 0;
  Time start = 0;
  Time stop = kNever;
  MessageStreamParameters stream;
  uint32_t sizes_first = 0;
  uint32_t sizes_count = 0;
  Rate rate_cap = 0;
  bool reliable = false;
  bool on_demand = false;
  uint16_t outstanding = 2;
  uint64_t source_mac = 0;
  uint32_t application = 0;
};
void describe(auto& v, Of<NetworkFlow> auto& flow) {
  v.type("NativeNetworkFlows", "By flow: one queue pair's traffic in one direction.");
  v("from", flow.from, field::any("Host."));
  v("to", flow.to, field::any("Host."));
  v("priority", flow.priority, field::priority("Of what is sent."));
  v("dscp", flow.dscp, field::within(0, 63, "Of what is sent."));
  v("udp_source_port", flow.udp_source_port, field::any("Entropy for next-hop groups."));
  v("start", flow.start, field::ns("Of sending."));
  v("stop", flow.stop, field::any("Nothing is sent from then on.", "ns"));
  v.base(flow.stream);
  v("sizes_first", flow.sizes_first, field::any("Messages of their own sizes: place of the first in `sizes`."));
  v("sizes_count", flow.sizes_count, field::any("How many those are, sent one after another; 0: none."));
  v("rate_cap", flow.rate_cap, field::bps("0: line rate."));
  v("reliable", flow.reliable, field::any("A reliable connection; else an unacknowledged stream."));
  v("on_demand", flow.on_demand, field::optional(field::any("Its messages are those of a graph (reliable only).")));
  v("outstanding", flow.outstanding, field::any("Messages posted at a time (reliable only)."));
  v("source_mac", flow.source_mac, field::optional(field::any("Of what its sender sends; 0: its NIC's.")));
  v("application", flow.application, field::optional(field::any("As in NativeStream, of its sender.")));
}

struct NetworkTraffic {
  Columns<NetworkFlow> flows;
  Column<uint32_t> sizes;
  QueueAttributes transport;

  NetworkTraffic& traffic() { return *this; }
  const NetworkTraffic& traffic() const { return *this; }
};
void describe(auto& v, Of<NetworkTraffic> auto& traffic) {
  v.type("NativeNetworkTraffic", "The traffic of a network.");
  v("flows", traffic.flows, field::any("Numbered from 0."));
  v("sizes", traffic.sizes, field::any("Of messages, where flows have a list of them.", "bytes"));
  v("transport", traffic.transport, field::any("Recovery, timeout, retry_count and window of reliable flows."));
}

// Where the flows' queue pairs are: those of a NIC are in the order of the flows, and numbered from kFirstStreamQpn on.
class FlowLayout {
 public:
  struct Place {
    uint32_t nic;
    uint32_t index;
  };

  // Throws NativeError INVALID_CONFIG for flows of other NICs than the first `nics`, and for sizes that are not there. The
  // traffic outlives this and all queue pairs.
  FlowLayout(const NetworkTraffic& traffic, size_t nics);

  Place sender(uint32_t flow) const { return places_[2 * flow]; }
  Place receiver(uint32_t flow) const { return places_[2 * flow + 1]; }
  const std::vector<uint32_t>& flows_of(uint32_t nic) const { return flows_[nic]; }
  // Queue pairs of NIC number `nic` of `nics`, the first of which has the address `first_mac`. Times are those of the flows.
  std::vector<QueuePairParameters> queue_pairs(uint32_t nic, const std::vector<NetworkNic>& nics, uint64_t first_mac) const;

 private:
  const NetworkTraffic& traffic_;
  std::vector<Place> places_;                 // both ends of each flow
  std::vector<std::vector<uint32_t>> flows_;  // flows by NIC and queue pair
};

}  // namespace weir
