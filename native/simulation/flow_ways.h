// The links that the frames of flows cross, as switches would send them: by the same groups of next hops and the same hash.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/describe.h"
#include "base/types.h"
#include "graph/fair_shares.h"
#include "simulation/config.h"
#include "switching/load_balancing.h"

namespace weir {

// A switch that sends frames by their flows.
struct RoutedSwitch : SimulatedRoutes {
  uint64_t hash_seed = 0;
  uint32_t component = 0;
  bool spreads = false;
  SimulatedRoutes& routes() { return *this; }
  const SimulatedRoutes& routes() const { return *this; }
};
void describe(auto& v, Of<RoutedSwitch> auto& device) {
  v.type("NativeRoutedSwitch", "A switch, of which nothing matters but where it sends flows.");
  v("hash_seed", device.hash_seed, field::any("As a switch's."));
  v("component", device.component, field::any("As a switch's."));
  v("spreads", device.spreads, field::any("Packets of a flow take all next hops of a group, evenly; else one, by a hash."));
  v.base(device.routes());
}

struct RoutedLink {
  uint32_t from_device = 0;
  uint32_t from_port = 0;
  uint32_t to_device = 0;
  uint32_t to_port = 0;
  Time delay = 0;
  Rate rate = 0;
};
void describe(auto& v, Of<RoutedLink> auto& link) {
  v.type("NativeRoutedLinks", "Full-duplex cables.");
  v("from_device", link.from_device, field::any("Number of the device at one end: switches first, then hosts."));
  v("from_port", link.from_port, field::any("Number of its port."));
  v("to_device", link.to_device, field::any("The same of the other end."));
  v("to_port", link.to_port, field::any("The same of the other end."));
  v("delay", link.delay, field::ns("One way."));
  v("rate", link.rate, field::bps("Of each direction; 0: no limit."));
}

struct RoutedFlow {
  uint32_t from = 0;
  uint32_t to = 0;
  uint16_t udp_source_port = 0;
};
void describe(auto& v, Of<RoutedFlow> auto& flow) {
  v.type("NativeRoutedFlows", "Flows of RoCEv2 frames.");
  v("from", flow.from, field::any("Host."));
  v("to", flow.to, field::any("Host."));
  v("udp_source_port", flow.udp_source_port, field::any("Entropy for next-hop groups."));
}

struct RoutedNetwork {
  std::vector<RoutedSwitch> switches;
  Column<uint32_t> addresses;
  Columns<RoutedLink> links;
  Columns<RoutedFlow> flows;
};
void describe(auto& v, Of<RoutedNetwork> auto& network) {
  v.type("NativeRoutedNetwork", "A network, and flows on it.");
  v("switches", network.switches, field::any("Numbered from 0."));
  v("addresses", network.addresses, field::any("IPv4, of each host."));
  v("links", network.links, field::any("One at every port; hosts have one port."));
  v("flows", network.flows, field::any("Numbered from 0."));
}

// The way of a flow, by directions of links: 2 x link, and 1 more for what its `to` sends.
struct FlowWay {
  std::vector<FairHop> hops;
  Time latency = 0;  // the longest, where the flow is spread
};

class FlowWays {
 public:
  // Throws NativeError INVALID_CONFIG for numbers of what there is not. The network must outlive it.
  explicit FlowWays(const RoutedNetwork& network);

  // Throws NativeError INVALID_CONFIG where a switch does not know the host.
  FlowWay of(const RoutedFlow& flow);
  // Rates of all directions, bit/s.
  std::vector<double> rates() const;

 private:
  struct End {
    uint32_t direction = 0;
    uint32_t peer = 0;
  };
  // A part of a flow that has come to a device.
  struct Part {
    uint32_t device;
    double share;
    Time latency;
  };
  static uint64_t pair(uint32_t from, uint32_t to) { return uint64_t{from} << 32 | to; }

  void place(uint32_t direction, uint32_t device, uint32_t port, uint32_t peer);
  uint32_t hash_of(const RoutedFlow& flow) const;
  // Ports by which a switch sends a flow on.
  void choose(uint32_t device, const RoutedFlow& flow, uint32_t hash);
  void go_on(const Part& part, FlowWay& way);

  const RoutedNetwork& network_;
  std::vector<std::vector<End>> ports_;                       // by device
  std::vector<std::unordered_map<uint64_t, uint16_t>> pins_;  // by switch
  std::vector<LoadBalancer> balancers_;                       // by switch
  std::vector<uint16_t> chosen_;
  std::vector<Part> here_, next_;
};

}  // namespace weir
