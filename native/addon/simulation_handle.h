// The JavaScript handle of a Simulation: see src/native/simulation_types.ts for the typed surface.
#pragma once

#include <napi.h>

#include <memory>

#include "simulation/simulation.h"

namespace weir {

class SimulationHandle : public Napi::ObjectWrap<SimulationHandle> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit SimulationHandle(const Napi::CallbackInfo& info);

 private:
  Napi::Value run(const Napi::CallbackInfo& info);
  Napi::Value progress(const Napi::CallbackInfo& info);
  Napi::Value counters(const Napi::CallbackInfo& info);
  Napi::Value drain_records(const Napi::CallbackInfo& info);
  Napi::Value drain_finished(const Napi::CallbackInfo& info);
  Napi::Value drain_trace(const Napi::CallbackInfo& info);
  Napi::Value under_way(const Napi::CallbackInfo& info);
  Napi::Value queue_distributions(const Napi::CallbackInfo& info);
  Napi::Value sender_state(const Napi::CallbackInfo& info);
  Napi::Value reconfigure_switch(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  Simulation& simulation(const Napi::CallbackInfo& info) const;

  std::unique_ptr<Simulation> simulation_;
};

// Names of the columns of counters().
Napi::Value simulation_manifest(const Napi::CallbackInfo& info);

}  // namespace weir
