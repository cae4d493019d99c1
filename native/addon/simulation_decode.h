// From JavaScript objects to a simulation's configuration: see src/native/simulation_types.ts.
#pragma once

#include <napi.h>

#include "simulation/config.h"

namespace weir {

SimulationConfig decode_simulation(const Napi::Object& object);
// An entry of `switches`, without its routes.
SwitchParameters decode_simulated_switch(const Napi::Object& object);

}  // namespace weir
