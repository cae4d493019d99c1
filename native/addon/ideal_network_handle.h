// The JavaScript handle of an IdealNetwork: see src/native/simulation_types.ts for the typed surface.
#pragma once

#include <napi.h>

#include <memory>

#include "addon/operation_times.h"
#include "addon/wrap.h"
#include "base/describe.h"
#include "graph/ideal_network.h"

namespace weir {

// A message graph, and the network on which it is ideal.
struct IdealNetworkConfig {
  MessageGraphColumns operations;
  GraphParameters parameters;
  Column<uint32_t> machine_of_rank;
  Columns<IdealWay> ways;
};
void describe(auto& v, Of<IdealNetworkConfig> auto& config) {
  v.type("IdealNetworkConfig", "A message graph on an ideal network.");
  v("operations", config.operations, field::any("The graph."));
  v.base(config.parameters);
  v("machine_of_rank", config.machine_of_rank, field::any("Ranks of one machine reach each other by its inside."));
  v("ways", config.ways, field::any("Of ranks on different machines."));
}

class IdealNetworkHandle : public Wrap<IdealNetworkHandle> {
 public:
  static constexpr const char* kName = "IdealNetwork";
  static constexpr napi_type_tag kTag{0x6b1f02c94d7e8a35, 0x91c4e6d8035fb72a};

  static Napi::Function define(Napi::Env env);
  explicit IdealNetworkHandle(const Napi::CallbackInfo& info);
  IdealNetwork& native() const;

 private:
  double ended() { return static_cast<double>(native().ended()); }
  OperationTimes operations() { return times_of(native().state()); }
  void close() { network_.reset(); }

  std::unique_ptr<IdealNetwork> network_;
};

}  // namespace weir
