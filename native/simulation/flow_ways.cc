#include "simulation/flow_ways.h"

#include <algorithm>
#include <utility>

#include "base/native_error.h"
#include "switching/forwarding.h"
#include "wire/bytes.h"
#include "wire/classify.h"

namespace weir {

FlowWays::FlowWays(const RoutedNetwork& network)
    : network_(network), ports_(network.switches.size() + network.addresses.size()), pins_(network.switches.size()) {
  for (uint32_t link = 0; link < network.links.size(); ++link) {
    const auto& [from, from_port, to, to_port, delay, rate] = network.links[link];
    place(2 * link, from, from_port, to);
    place(2 * link + 1, to, to_port, from);
  }
  for (uint32_t device = 0; device < pins_.size(); ++device) {
    check(network.switches[device], ports_[device].size(), network.addresses.size());
    balancers_.emplace_back(network.switches[device].hash_seed, network.switches[device].component);
    for (const auto& [from, to, port] : network.switches[device].pins) pins_[device].emplace(pair(from, to), port);
  }
  for (uint32_t device = static_cast<uint32_t>(pins_.size()); device < ports_.size(); ++device) {
    require(ports_[device].size() == 1, "network.links", "there is one at every host");
  }
}

void FlowWays::place(uint32_t direction, uint32_t device, uint32_t port, uint32_t peer) {
  require(device < ports_.size() && peer < ports_.size() && port < Forwarding::kNoGroup, "network.links",
          "they end at ports that exist");
  std::vector<End>& ports = ports_[device];
  if (port >= ports.size()) ports.resize(port + 1u);
  ports[port] = {direction, peer};
}

std::vector<double> FlowWays::rates() const {
  std::vector<double> rates;
  for (const RoutedLink& link : network_.links) rates.insert(rates.end(), 2, static_cast<double>(link.rate));
  return rates;
}

FlowWay FlowWays::of(const RoutedFlow& flow) {
  const auto hosts = network_.addresses.size();
  require(flow.from < hosts && flow.to < hosts && flow.from != flow.to, "network.flows", "a flow has two hosts");
  const uint32_t target = static_cast<uint32_t>(network_.switches.size()) + flow.to;
  const uint32_t hash = hash_of(flow);
  FlowWay way;
  next_ = {{static_cast<uint32_t>(network_.switches.size()) + flow.from, 1, 0}};
  // All ways of a flow are of the same length, so that parts that meet again do so at the same distance.
  for (size_t length = 0; !next_.empty(); ++length) {
    require(length <= network_.switches.size() + 1, "network.switches", "a flow goes round in a circle");
    here_.clear();
    std::swap(here_, next_);
    for (const Part& part : here_) {
      if (part.device == target) {
        way.latency = std::max(way.latency, part.latency);
        continue;
      }
      choose(part.device, flow, hash);
      go_on(part, way);
    }
  }
  return way;
}

void FlowWays::choose(uint32_t device, const RoutedFlow& flow, uint32_t hash) {
  chosen_.assign(1, 0);
  if (device >= network_.switches.size()) return;
  const RoutedSwitch& own = network_.switches[device];
  const auto pin = pins_[device].find(pair(flow.from, flow.to));
  if (pin != pins_[device].end()) {
    chosen_[0] = pin->second;
    return;
  }
  const uint16_t group = flow.to < own.group_of_host.size() ? own.group_of_host[flow.to] : Forwarding::kNoGroup;
  require(group != Forwarding::kNoGroup && !own.groups[group].empty(), "network.switches", "they know where each host is");
  chosen_ = own.groups[group];
  if (chosen_.size() == 1 || own.spreads) return;
  chosen_ = {chosen_[balancers_[device].choose(0, hash, chosen_.size(), [](size_t) { return PortLoad{}; })]};
}

void FlowWays::go_on(const Part& part, FlowWay& way) {
  const double share = part.share / static_cast<double>(chosen_.size());
  for (const uint16_t port : chosen_) {
    const auto [direction, peer] = ports_[part.device][port];
    const Time latency = part.latency + network_.links[direction / 2].delay;
    way.hops.push_back({direction, share});
    const auto met = std::ranges::find(next_, peer, &Part::device);
    if (met == next_.end()) {
      next_.push_back({peer, share, latency});
    } else {
      met->share += share;
      met->latency = std::max(met->latency, latency);
    }
  }
}

uint32_t FlowWays::hash_of(const RoutedFlow& flow) const {
  uint8_t addresses[8];
  store_be32(addresses, network_.addresses[flow.from]);
  store_be32(addresses + 4, network_.addresses[flow.to]);
  return roce_flow_hash(addresses, flow.udp_source_port);
}

}  // namespace weir
