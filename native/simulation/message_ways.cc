#include "simulation/message_ways.h"

#include <algorithm>
#include <map>
#include <utility>

#include "congestion/controller.h"
#include "simulation/flow_ways.h"

namespace weir {
namespace {

// Headers and gap of a frame with payload: Ethernet, IPv4, UDP, BTH, RETH or immediate data, ICRC, FCS, preamble and gap.
constexpr double kHeaders = 82;

RoutedNetwork routed(const SimulationConfig& config) {
  RoutedNetwork network;
  const bool sprays = config.transport.spraying != Spraying::none;
  for (const SimulatedSwitch& device : config.switches) {
    RoutedSwitch& own = network.switches.emplace_back();
    own.routes() = device.routes();
    own.hash_seed = device.parameters.hash_seed;
    own.component = static_cast<uint32_t>(device.parameters.component);
    const LoadBalancing how = device.parameters.load_balancing;
    own.spreads = sprays || how == LoadBalancing::spray || how == LoadBalancing::adaptive;
  }
  for (const SimulatedNic& nic : config.nics) {
    const uint8_t* const ip = nic.ip;
    network.addresses.push_back(uint32_t{ip[0]} << 24 | uint32_t{ip[1]} << 16 | uint32_t{ip[2]} << 8 | ip[3]);
  }
  for (const SimulatedLink& link : config.links) {
    const auto& [from, to] = link.ends;
    network.links.push_back({from.device, from.port, to.device, to.port, link.delay, 0});
  }
  for (const NetworkFlow& flow : config.flows) network.flows.push_back({flow.from, flow.to, flow.udp_source_port});
  return network;
}

Rate rate_of_hop(const SimulationConfig& config, const LinkEnd& end) {
  const size_t switches = config.switches.size();
  if (end.device < switches) return config.switches[end.device].parameters.ports[end.port].rate;
  return config.nics[end.device - switches].parameters.rate;
}

}  // namespace

std::string phases_refusal(const SimulationConfig& config) {
  if (!config.taps.empty()) return "frames are traced";
  if (!config.faults.empty()) return "faults of frames happen at their times";
  const auto other = [](const NetworkFlow& flow) { return !flow.on_demand; };
  if (std::ranges::any_of(config.flows, other)) return "there is traffic beside message graphs";
  if (has_programs(config)) return "there are programs beside message graphs";
  const auto impaired = [](const SimulatedLink& link) { return link.impairment.has_value(); };
  if (std::ranges::any_of(config.links, impaired)) return "links are impaired by chance";
  const auto storms = [](const SimulatedNic& nic) { return nic.parameters.pause_storm.priorities != 0; };
  if (std::ranges::any_of(config.nics, storms)) return "a host pauses its link at times of its own";
  const auto moves = [](const SimulatedNic& nic) { return (hears(nic.parameters.congestion) & kHearsAcknowledgements) != 0; };
  if (std::ranges::any_of(config.nics, moves)) {
    return "congestion control moves with each acknowledgement, and so how long a message takes depends on all before it";
  }
  const auto learns = [](const SimulatedSwitch& device) { return device.parameters.learning; };
  if (std::ranges::any_of(config.switches, learns)) return "switches learn where hosts are";
  if (config.fast_forward->due.size() > 1) return "something happens to the network during the run";
  return "";
}

MessageWays::MessageWays(const SimulationConfig& config) {
  const RoutedNetwork network = routed(config);
  FlowWays finder(network);
  std::map<std::vector<int64_t>, uint32_t> kinds;
  for (size_t i = 0; i < config.flows.size(); ++i) {
    const NetworkFlow& flow = config.flows[i];
    const FlowWay found = finder.of(network.flows[i]);
    Way& own = ways_.emplace_back();
    own.first = static_cast<uint32_t>(hops_.size());
    own.count = static_cast<uint32_t>(found.hops.size());
    const double frame = flow.stream.path_mtu + kHeaders;
    std::vector<int64_t> kind{flow.stream.path_mtu, flow.priority, flow.rate_cap};
    Rate slowest = flow.rate_cap;
    Time after = 0;
    for (size_t hop = found.hops.size(); hop-- > 0;) {
      const uint32_t direction = found.hops[hop].link;
      const SimulatedLink& link = config.links[direction / 2];
      const Rate rate = rate_of_hop(config, link.ends[direction % 2]);
      after += link.delay;
      hops_.push_back({direction, after});
      if (rate > 0) after += static_cast<Time>(frame * 8e9 / static_cast<double>(rate));
      if (rate > 0 && (slowest == 0 || rate < slowest)) slowest = rate;
      kind.insert(kind.end(), {rate, link.delay, static_cast<int64_t>(found.hops[hop].share * 1e6)});
    }
    own.ns_per_byte = slowest == 0 ? 0 : 8e9 / static_cast<double>(slowest) * frame / flow.stream.path_mtu;
    own.kind = kinds.emplace(std::move(kind), static_cast<uint32_t>(kinds.size())).first->second;
  }
}

}  // namespace weir
