// The JavaScript handle of a FairNetwork: see src/native/simulation_types.ts for the typed surface.
#pragma once

#include <napi.h>

#include <memory>

#include "addon/operation_times.h"
#include "addon/wrap.h"
#include "base/describe.h"
#include "graph/fair_network.h"
#include "graph/graph_traffic.h"
#include "simulation/flow_ways.h"

namespace weir {

// A message graph, and the network on whose links its messages have fair shares.
struct FairNetworkConfig {
  PlacedGraph graph;
  RoutedNetwork network;
};
void describe(auto& v, Of<FairNetworkConfig> auto& config) {
  v.type("FairNetworkConfig", "A message graph on fair shares of a network's links.");
  v("graph", config.graph, field::any("Its streams are flows of the network."));
  v("network", config.network, field::any("Switches, links and flows."));
}

class FairNetworkHandle : public Wrap<FairNetworkHandle> {
 public:
  static constexpr const char* kName = "FairNetwork";
  static constexpr napi_type_tag kTag{0x2fd0b8a1935c47e6, 0xc60e5b7d41f92a83};

  static Napi::Function define(Napi::Env env);
  explicit FairNetworkHandle(const Napi::CallbackInfo& info);
  FairNetwork& native() const;

 private:
  double ended() { return static_cast<double>(native().ended()); }
  OperationTimes operations() { return times_of(native().state()); }
  Column<double> carried() { return {native().carried().begin(), native().carried().end()}; }
  void close() { network_.reset(); }

  std::unique_ptr<FairNetwork> network_;
};

}  // namespace weir
