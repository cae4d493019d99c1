// probeInterface(name, namespacePath?): see src/native/types.ts.
#pragma once

#include <napi.h>

namespace weir {

Napi::Value probe_interface_js(const Napi::CallbackInfo& info);

}  // namespace weir
