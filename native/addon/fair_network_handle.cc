#include "addon/fair_network_handle.h"

#include <deque>
#include <utility>
#include <vector>

#include "base/native_error.h"

namespace weir {

namespace {

// The first NIC of each rank's machine.
std::vector<uint32_t> machines_of_ranks(PlacedGraph& graph, size_t hosts) {
  const std::vector<uint32_t> machine_of_nic = checked_machines(std::move(graph.machine_of_nic), hosts);
  std::vector<uint32_t> machines;
  for (const uint32_t nic : graph.nic_of_rank) {
    require(nic < hosts, "graph.nic_of_rank", "each rank has a NIC");
    machines.push_back(machine_of_nic[nic]);
  }
  return machines;
}

std::unique_ptr<FairNetwork> network_of(FairNetworkConfig&& config) {
  FlowWays finder(config.network);
  std::deque<FlowWay> found;
  std::vector<FairNetwork::Way> ways;
  for (const auto& [stream, from, to] : config.graph.connections) {
    require(stream < config.network.flows.size(), "graph.connections", "they are flows that exist");
    const FlowWay& own = found.emplace_back(finder.of(config.network.flows[stream]));
    ways.push_back({from, to, own.latency, own.hops});
  }
  std::vector<uint32_t> machines = machines_of_ranks(config.graph, config.network.addresses.size());
  return std::make_unique<FairNetwork>(std::move(config.graph.operations), config.graph.parameters, std::move(machines),
                                       config.graph.begins, finder.rates(), ways);
}

}  // namespace

Napi::Function FairNetworkHandle::define(Napi::Env env) {
  return DefineClass(env, "FairNetwork",
                     {method<&FairNetwork::run, "run(messages)">(), method<&FairNetworkHandle::ended, "ended()">(),
                      method<&FairNetworkHandle::operations, "operations()">(),
                      method<&FairNetworkHandle::carried, "carried()">(), method<&FairNetworkHandle::close, "close()">()});
}

FairNetworkHandle::FairNetworkHandle(const Napi::CallbackInfo& info) : Wrap(info) {
  translated(info.Env(), [&] {
    FairNetworkConfig config;
    from_js(info[0], config, {.name = "fair network"});
    network_ = network_of(std::move(config));
  });
}

FairNetwork& FairNetworkHandle::native() const {
  if (network_ == nullptr) throw Napi::Error::New(Env(), "the network is closed");
  return *network_;
}

}  // namespace weir
