#include "simulation/config.h"

#include <algorithm>
#include <numeric>

#include "switching/forwarding.h"

namespace weir {
namespace {

bool hosts_programs(const SimulatedNic& nic) { return nic.parameters.verbs_queue_pairs > 0; }

}  // namespace

bool has_programs(const SimulationConfig& config) { return std::ranges::any_of(config.nics, hosts_programs); }

void check(const SimulatedRoutes& s, size_t ports, size_t hosts) {
  const auto is_port = [&](uint16_t port) { return port < ports; };
  const auto is_group = [&](uint16_t group) { return group == Forwarding::kNoGroup || group < s.groups.size(); };
  require(s.group_of_host.size() <= hosts, "simulation.switches.group_of_host", "there is an entry for each host at most");
  require(std::ranges::all_of(s.group_of_host, is_group), "simulation.switches.group_of_host", "entries are places of groups");
  for (const std::vector<uint16_t>& group : s.groups) {
    require(std::ranges::all_of(group, is_port), "simulation.switches.groups", "they are of ports of the switch");
  }
  for (const SimulatedRoutes::Pin& pin : s.pins) {
    require(pin.from < hosts && pin.to < hosts && is_port(pin.port), "simulation.switches.pins",
            "they are of hosts and of ports of the switch");
  }
}

// Numbers are checked: places that do not exist would be written to.
void check(const SimulationConfig& config) {
  FieldCheck fields({.name = "simulation"});
  describe(fields, config);
  const size_t switches = config.switches.size();
  const size_t hosts = config.nics.size();
  const auto exists = [&](const LinkEnd& end) {
    if (end.device < switches) return end.port < config.switches[end.device].parameters.ports.size();
    return end.device - switches < hosts && end.port == 0;
  };
  for (size_t i = 0; i < hosts; ++i) {
    require(config.nics[i].parameters.mac == config.nics[0].parameters.mac + i, "simulation.nics.mac", "addresses are in a row");
    require(config.nics[i].parameters.first_qpn == kFirstStreamQpn, "simulation.nics.first_qpn", "it is that of all NICs");
  }
  size_t ports = hosts;
  for (const SimulatedSwitch& s : config.switches) {
    check(s, s.parameters.ports.size(), hosts);
    ports += s.parameters.ports.size();
  }
  for (const SimulatedLink& link : config.links) {
    require(exists(link.ends[0]) && exists(link.ends[1]), "simulation.links", "they end at ports that exist");
  }
  require(2 * config.links.size() == ports, "simulation.links", "there is one at every port");
  const auto is_link = [&](const SimulatedFault& fault) { return fault.link < config.links.size(); };
  require(std::ranges::all_of(config.faults, is_link), "simulation.faults.link", "they are at links that exist");
  if (config.graph) {
    const auto on_demand = [&](const GraphConnection& one) {
      return one.stream < config.flows.size() && config.flows[one.stream].on_demand;
    };
    require(std::ranges::all_of(config.graph->connections, on_demand), "simulation.graph.connections",
            "they are flows on demand that exist");
  }
  require(std::ranges::all_of(config.taps, exists), "simulation.taps", "they are at ports that exist");
  for (const SampledQueue& queue : config.sampled_queues) {
    require(queue.device < switches && exists({queue.device, queue.port}), "simulation.sampled_queues",
            "they are queues that exist");
  }
  if (config.fast_forward) {
    const std::vector<Time>& due = config.fast_forward->due;
    require(!due.empty() && std::ranges::is_sorted(due), "simulation.fast_forward.due", "times ascend, and the last is the end");
  }
  const auto is_flow = [&](uint32_t flow) { return flow < config.flows.size(); };
  require(std::ranges::all_of(config.sampled_flows, is_flow), "simulation.sampled_flows", "they are flows that exist");
}

std::vector<uint32_t> machines_of(const SimulationConfig& config) {
  if (config.graph && !config.graph->machine_of_nic.empty()) return config.graph->machine_of_nic;
  std::vector<uint32_t> machines(config.nics.size());
  std::iota(machines.begin(), machines.end(), 0);
  const auto first = std::ranges::find_if(config.nics, hosts_programs);
  for (size_t i = 0; i < machines.size(); ++i) {
    if (hosts_programs(config.nics[i])) machines[i] = static_cast<uint32_t>(first - config.nics.begin());
  }
  return machines;
}

}  // namespace weir
