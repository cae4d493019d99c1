// Native errors as JavaScript errors.
#pragma once

#include <napi.h>

#include <cerrno>
#include <new>

#include "base/native_error.h"

namespace weir {

inline Napi::Error to_js(Napi::Env env, const NativeError& e) {
  Napi::Error error = Napi::Error::New(env, e.what());
  error.Set("code", e.code);
  error.Set("errno", Napi::Number::New(env, e.error_number));
  error.Set("syscall", e.syscall);
  error.Set("hint", e.hint);
  return error;
}

// Runs `action`; a NativeError becomes a JavaScript Error with code, errno, syscall and hint, as does a lack of memory.
template <class Action>
auto translated(Napi::Env env, Action action) {
  try {
    return action();
  } catch (const NativeError& e) {
    throw to_js(env, e);
  } catch (const std::bad_alloc&) {
    throw to_js(env, {"ENOMEM", ENOMEM, "", "the native core was refused memory",
                      "free some, or raise the limits of this process (ulimit -v, and of its control group: memory.max)"});
  }
}

}  // namespace weir
