#include "addon/shared_switch_handle.h"

#include <vector>

#include "addon/decode.h"
#include "addon/errors.h"
#include "addon/fields.h"

namespace weir {

Napi::Function SharedSwitchHandle::define(Napi::Env env) { return DefineClass(env, "SharedSwitch", {}); }

SharedSwitchHandle::SharedSwitchHandle(const Napi::CallbackInfo& info) : Napi::ObjectWrap<SharedSwitchHandle>(info) {
  if (!info[0].IsObject() || !info[1].IsArray() || !info[2].IsNumber()) {
    throw Napi::TypeError::New(info.Env(), "SharedSwitch(config, owner, workers)");
  }
  const Napi::Array list = info[1].As<Napi::Array>();
  translated(info.Env(), [&] {
    const auto workers = number_from<uint32_t>(info[2], "SharedSwitch(workers)");
    std::vector<uint8_t> owner;
    for (uint32_t i = 0; i < list.Length(); ++i) owner.push_back(number_from<uint8_t>(list.Get(i), "SharedSwitch(owner)"));
    shared_ = std::make_shared<SharedSwitch>(decode_worker(info[0].As<Napi::Object>()).shape(), std::move(owner), workers);
  });
  tag<SharedSwitchHandle>(info);
}

}  // namespace weir
