#include "addon/shared_switch_handle.h"

#include <vector>

#include "addon/decode.h"
#include "addon/errors.h"

namespace weir {

Napi::Function SharedSwitchHandle::define(Napi::Env env) { return DefineClass(env, "SharedSwitch", {}); }

SharedSwitchHandle::SharedSwitchHandle(const Napi::CallbackInfo& info) : Napi::ObjectWrap<SharedSwitchHandle>(info) {
  if (!info[0].IsObject() || !info[1].IsArray() || !info[2].IsNumber()) {
    throw Napi::TypeError::New(info.Env(), "SharedSwitch(config, owner, workers)");
  }
  const Napi::Array list = info[1].As<Napi::Array>();
  std::vector<uint8_t> owner;
  for (uint32_t i = 0; i < list.Length(); ++i) owner.push_back(static_cast<uint8_t>(list.Get(i).ToNumber().Uint32Value()));
  translated(info.Env(), [&] {
    const PacketShape shape = decode_worker(info[0].As<Napi::Object>()).shape();
    shared_ = std::make_shared<SharedSwitch>(shape, std::move(owner), info[2].As<Napi::Number>().Uint32Value());
  });
}

std::shared_ptr<SharedSwitch> SharedSwitchHandle::of(const Napi::Value& value) {
  return value.IsObject() ? Unwrap(value.As<Napi::Object>())->shared_ : nullptr;
}

}  // namespace weir
