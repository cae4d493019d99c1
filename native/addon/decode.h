// From JavaScript objects to the engine's configuration. TypeScript has validated the values; what is missing or of the
// wrong type here is a defect of ours and is thrown as INVALID_CONFIG naming the field.
#pragma once

#include <napi.h>

#include "engine/config.h"

namespace weir {

WorkerConfig decode_worker(const Napi::Object& object);

}  // namespace weir
