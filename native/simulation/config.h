// Configuration that TypeScript hands to a simulation: plain numbers in virtual nanoseconds and bits per second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
#include "base/types.h"
#include "endpoint/network_traffic.h"
#include "endpoint/soft_nic.h"
#include "graph/graph_traffic.h"
#include "link/faults.h"
#include "link/impairment.h"
#include "switching/soft_switch.h"

namespace weir {

// Routes by which a switch sends frames to hosts.
struct SimulatedRoutes {
  std::vector<std::vector<uint16_t>> groups;
  Column<uint16_t> group_of_host;
  struct Pin {
    uint32_t from;
    uint32_t to;
    uint16_t port;
  };
  std::vector<Pin> pins;
};
void describe(auto& v, Of<SimulatedRoutes::Pin> auto& pin) {
  v.type("NativeSimulationPin", "Where frames from one host to another go, instead.");
  v("from", pin.from, field::any("Host."));
  v("to", pin.to, field::any("Host."));
  v("port", pin.port, field::any("Next hop."));
}
void describe(auto& v, Of<SimulatedRoutes> auto& routes) {
  v.type("NativeSimulationRoutes", "Where a switch sends frames for hosts.");
  v("groups", routes.groups, field::any("Of next hops."));
  v("group_of_host", routes.group_of_host, field::any("For each host in order the position of its group; 0xffff: none."));
  v("pins", routes.pins, field::any("Exceptions from them."));
}

struct SimulatedSwitch : SimulatedRoutes {
  SwitchParameters parameters;
  SimulatedRoutes& routes() { return *this; }
  const SimulatedRoutes& routes() const { return *this; }
};
void describe(auto& v, Of<SimulatedSwitch> auto& device) {
  v.type("NativeSimulationSwitch", "A switch.");
  v.base(device.parameters);
  v.base(device.routes());
}

struct SimulatedNic : NetworkNic {
  NicParameters parameters;
  NetworkNic& network() { return *this; }
  const NetworkNic& network() const { return *this; }
};
void describe(auto& v, Of<SimulatedNic> auto& device) {
  v.type("NativeSimulationNic", "A NIC.");
  v.base(device.parameters);
  v.base(device.network());
}

// A device's place on a link; devices are numbered switches first.
struct LinkEnd {
  uint32_t device = 0;
  uint16_t port = 0;
};
void describe(auto& v, Of<LinkEnd> auto& end) {
  v.type("NativeLinkEnd", "A device's place on a link; devices are numbered switches first, then NICs (port 0).");
  v("device", end.device, field::any("Number of the device."));
  v("port", end.port, field::any("Number of its port."));
}

struct SimulatedLink {
  LinkEnd ends[2];
  Time delay = 0;
  std::optional<ImpairmentParameters> impairment;
};
void describe(auto& v, Of<SimulatedLink> auto& link) {
  v.type("NativeSimulationLink", "A full-duplex cable.");
  v("from", link.ends[0], field::any("One end."));
  v("to", link.ends[1], field::any("The other."));
  v("delay", link.delay, field::ns("One way."));
  v("impairment", link.impairment,
    field::optional(field::any("By direction, on top of `delay`; keyed by the link's position. Absent: none.")));
}

// A fault of frames that come in at one end of a link.
struct SimulatedFault {
  uint32_t link = 0;
  uint8_t end = 0;
  FaultParameters fault;
};
void describe(auto& v, Of<SimulatedFault> auto& fault) {
  v.type("NativeSimulationFault", "A fault that is made on purpose.");
  v("link", fault.link, field::any("Number of the link."));
  v("end", fault.end, field::within(0, 1, "End at which frames come in: 0 `from`, 1 `to`."));
  v.base(fault.fault);
  v.rule(fault.fault.kind != FaultParameters::Kind::down, "links fail by setLink()");
}

struct SampledQueue {
  uint32_t device = 0;
  uint16_t port = 0;
  uint8_t priority = 3;
};
void describe(auto& v, Of<SampledQueue> auto& queue) {
  v.type("NativeQueuePlace", "An egress queue.");
  v("switch", queue.device, field::any("Its number."));
  v("port", queue.port, field::any("Number of the port."));
  v("priority", queue.priority, field::priority("Of the port."));
}

// How long flows are forwarded while the network is in a steady state (simulation/fast_forward.h).
struct FastForwardParameters {
  double bound = 0;
  double share = 0;
  std::vector<Time> due;
};
void describe(auto& v, Of<FastForwardParameters> auto& p) {
  v.type("NativeFastForward", "How long flows are forwarded while the network is in a steady state.");
  v("bound", p.bound, field::above(field::within(0, 1, "Part by which a stretch may differ from what was foretold.")));
  v("share", p.share,
    field::optional(field::within(0, 1, "Part of what is skipped that is simulated to judge it, at least; 0: what is usual.")));
  v("due", p.due,
    field::any("When something happens to the network from outside, ascending, ns; and last the end of the run, at which nothing "
               "does."));
}

inline constexpr uint32_t kMostThreads = 128;

struct SimulationConfig : NetworkTraffic {
  uint64_t seed = 1;
  Time sample_interval = 0;
  Time reset_after = 0;
  std::vector<SimulatedSwitch> switches;
  std::vector<SimulatedNic> nics;
  std::vector<SimulatedLink> links;
  std::vector<SimulatedFault> faults;
  std::optional<PlacedGraph> graph;
  Column<uint32_t> sampled_flows;
  std::vector<SampledQueue> sampled_queues;
  bool all_distributions = false;
  std::vector<LinkEnd> taps;
  uint32_t threads = 1;
  bool fewer_threads = false;
  std::optional<FastForwardParameters> fast_forward;
};
void describe(auto& v, Of<SimulationConfig> auto& config) {
  v.type("SimulationConfig", "A network and its traffic.");
  v.base(config.traffic());
  v("seed", config.seed, field::any("Of impairments."));
  v("sample_interval", config.sample_interval, field::ns("0: no samples."));
  v("reset_after", config.reset_after, field::ns("When distributions of queues start afresh."));
  v("switches", config.switches, field::any("Numbered from 0."));
  v("nics", config.nics, field::any("Of hosts, with addresses in a row."));
  v("links", config.links, field::any("One at every port."));
  v("faults", config.faults, field::optional(field::any("Numbered from 0; times count from the beginning.")));
  v("graph", config.graph, field::optional(field::any("Messages that wait for others, on flows on demand.")));
  v("sampled_flows", config.sampled_flows, field::any("Their transmit and receive records are sampled."));
  v("sampled_queues", config.sampled_queues, field::any("Their lengths are, and their distribution is kept."));
  v("all_distributions", config.all_distributions, field::any("Keep that of every queue that holds anything."));
  v("taps", config.taps, field::any("Frames that leave these ports are traced."));
  v("threads", config.threads,
    field::within(1, kMostThreads, "That carry it out, no more than devices; what comes of it is the same."));
  v("fewer_threads", config.fewer_threads, field::any("Not so many where the network is too small to gain by them."));
  v("fast_forward", config.fast_forward, field::optional(field::any("Absent: everything is simulated, packet by packet.")));
}

// Throws NativeError INVALID_CONFIG for what cannot be simulated: values out of their ranges, and numbers of what there is not.
void check(const SimulationConfig& config);
// The same for routes of a switch with so many ports, in a network of so many hosts.
void check(const SimulatedRoutes& routes, size_t ports, size_t hosts);

// Whether any NIC has queue pairs of programs, whose frames have payload.
bool has_programs(const SimulationConfig& config);

// For each NIC the first one of its machine. Those with programs are of one: these see each other at once by what is no network.
std::vector<uint32_t> machines_of(const SimulationConfig& config);

}  // namespace weir
