// What several workers of one switch share, as JavaScript holds it: named in the configuration of each of them.
#pragma once

#include <napi.h>

#include <memory>

#include "engine/shared_switch.h"

namespace weir {

class SharedSwitchHandle : public Napi::ObjectWrap<SharedSwitchHandle> {
 public:
  static Napi::Function define(Napi::Env env);
  // SharedSwitch(config, owner, workers): `config` of any of the workers.
  explicit SharedSwitchHandle(const Napi::CallbackInfo& info);
  // Null unless `value` is one.
  static std::shared_ptr<SharedSwitch> of(const Napi::Value& value);

 private:
  std::shared_ptr<SharedSwitch> shared_;
};

}  // namespace weir
