// From JavaScript objects to the engine's configuration.
#pragma once

#include <napi.h>

#include "addon/fields.h"
#include "engine/config.h"

namespace weir {

RocePath decode_path(const Fields& path);
WorkerConfig decode_worker(const Napi::Object& object);

}  // namespace weir
