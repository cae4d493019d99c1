// Native errors as JavaScript errors.
#pragma once

#include <napi.h>

#include "base/native_error.h"

namespace weir {

// Runs `action`; a NativeError becomes a JavaScript Error with code, errno, syscall and hint.
template <class Action>
auto translated(Napi::Env env, Action action) {
  try {
    return action();
  } catch (const NativeError& e) {
    Napi::Error error = Napi::Error::New(env, e.what());
    error.Set("code", e.code);
    error.Set("errno", Napi::Number::New(env, e.error_number));
    error.Set("syscall", e.syscall);
    error.Set("hint", e.hint);
    throw error;
  }
}

}  // namespace weir
