#include "addon/shared_switch_handle.h"

#include <vector>

#include "engine/config.h"

namespace weir {

Napi::Function SharedSwitchHandle::define(Napi::Env env) { return DefineClass(env, "SharedSwitch", {}); }

SharedSwitchHandle::SharedSwitchHandle(const Napi::CallbackInfo& info) : Wrap(info) {
  constexpr const char* kSignature = "SharedSwitch(config, owner, workers)";
  translated(info.Env(), [&] {
    const auto config = argument<WorkerConfig>(info, kSignature, 0);
    const auto owner = argument<std::vector<uint8_t>>(info, kSignature, 1);
    const auto workers = argument<uint32_t>(info, kSignature, 2);
    shared_ = std::make_shared<SharedSwitch>(config.shape(), owner, workers, config.sends_live());
  });
}

}  // namespace weir
