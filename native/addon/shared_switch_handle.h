// Part of a switch that several workers share, as JavaScript holds it: named in the configuration of each of them.
#pragma once

#include <napi.h>

#include <memory>

#include "addon/wrap.h"
#include "engine/shared_switch.h"

namespace weir {

class SharedSwitchHandle : public Wrap<SharedSwitchHandle> {
 public:
  static constexpr const char* kName = "SharedSwitch";
  static constexpr napi_type_tag kTag{0x2b96d0c3f81a47e5, 0xa4e87153b2c06fd9};

  static Napi::Function define(Napi::Env env);
  // SharedSwitch(config, owner, workers): `config` of any of the workers.
  explicit SharedSwitchHandle(const Napi::CallbackInfo& info);
  const std::shared_ptr<SharedSwitch>& shared() const { return shared_; }

 private:
  std::shared_ptr<SharedSwitch> shared_;
};

inline void from_js(const Napi::Value& value, std::shared_ptr<SharedSwitch>& out, const Path& /*path*/) {
  out = unwrap<SharedSwitchHandle>(value).shared();
}

}  // namespace weir
