// From JavaScript objects to the engine's configuration.
#pragma once

#include <napi.h>

#include "addon/fields.h"
#include "engine/config.h"

namespace weir {

RocePath decode_path(const Fields& path);
// All but what depends on an interface.
SwitchParameters::Port decode_switch_port(const Fields& f);
// All but ports and routes.
void decode_switch_behaviour(const Fields& f, SwitchParameters& parameters);
// All but the link's rate and queue pairs.
void decode_nic_behaviour(const Fields& f, NicParameters& parameters);
WorkerConfig decode_worker(const Napi::Object& object);

}  // namespace weir
