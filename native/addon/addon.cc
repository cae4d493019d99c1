#include <napi.h>

#include "addon/worker_handle.h"
#include "engine/worker.h"

namespace {

Napi::Value now(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(weir::monotonic_now()));
}

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  exports.Set("Worker", weir::WorkerHandle::define(env));
  exports.Set("monotonicNow", Napi::Function::New(env, now, "monotonicNow"));
  return exports;
}

}  // namespace

NODE_API_MODULE(weir, initialize)
