// Objects of our classes as arguments. The class is not told by the wrap itself: each has a tag.
#pragma once

#include <napi.h>

#include <string>

namespace weir {

// The native side of `value`, which must have been made by `Handle`; its constructor calls tag(). Throws a JavaScript TypeError
// that names the class.
template <class Handle>
Handle& unwrap(const Napi::Value& value) {
  if (!value.IsObject() || !value.As<Napi::Object>().CheckTypeTag(&Handle::kTag)) {
    throw Napi::TypeError::New(value.Env(), std::string("expected a ") + Handle::kName);
  }
  return *Handle::Unwrap(value.As<Napi::Object>());
}

template <class Handle>
void tag(const Napi::CallbackInfo& info) {
  info.This().As<Napi::Object>().TypeTag(&Handle::kTag);
}

}  // namespace weir
