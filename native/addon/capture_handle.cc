#include "addon/capture_handle.h"

namespace weir {

Napi::Function CaptureHandle::define(Napi::Env env) {
  return DefineClass(env, "Capture",
                     {method<&CaptureHandle::drain, "drain(target)">(), method<&CaptureHandle::counts, "counts()">()});
}

CaptureHandle::CaptureHandle(const Napi::CallbackInfo& info) : Wrap(info) {
  translated(info.Env(), [&] {
    CaptureConfig config;
    from_js(info[0], config, {.name = "capture"});
    capture_ = std::make_shared<Capture>(config.options, config.taps);
  });
}

const std::shared_ptr<Capture>& CaptureHandle::give() {
  if (given_) throw Napi::Error::New(Env(), "capture: a worker records to it already");
  given_ = true;
  return capture_;
}

size_t CaptureHandle::drain(std::span<uint8_t> target) {
  if (target.size() < capture_->longest_record()) {
    throw Napi::TypeError::New(Env(), "drain(target): target must be a Uint8Array with room for the longest record");
  }
  return capture_->drain(target);
}

std::vector<Capture::Counts> CaptureHandle::counts() {
  std::vector<Capture::Counts> out;
  for (uint32_t tap = 0; tap < capture_->taps(); ++tap) out.push_back(capture_->counts(tap));
  return out;
}

}  // namespace weir
