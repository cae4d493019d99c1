#include "addon/capture_handle.h"

#include "addon/errors.h"
#include "addon/fields.h"

namespace weir {

Napi::Function CaptureHandle::define(Napi::Env env) {
  return DefineClass(env, "Capture",
                     {InstanceMethod("drain", &CaptureHandle::drain), InstanceMethod("counts", &CaptureHandle::counts)});
}

CaptureHandle::CaptureHandle(const Napi::CallbackInfo& info) : Napi::ObjectWrap<CaptureHandle>(info) {
  translated(info.Env(), [&] {
    const Fields fields(info[0], "capture");
    CaptureOptions options;
    fields.number("snap_length", options.snap_length);
    fields.number("ring_bytes", options.ring_bytes);
    fields.number("kinds", options.kinds);
    uint32_t taps = 0;
    fields.number("taps", taps);
    capture_ = std::make_shared<Capture>(options, taps);
  });
  tag<CaptureHandle>(info);
}

std::shared_ptr<Capture> CaptureHandle::give(const Napi::Value& value) {
  CaptureHandle& self = unwrap<CaptureHandle>(value);
  if (self.given_) throw Napi::Error::New(value.Env(), "capture: a worker records to it already");
  self.given_ = true;
  return self.capture_;
}

Napi::Value CaptureHandle::drain(const Napi::CallbackInfo& info) {
  if (!info[0].IsTypedArray() || info[0].As<Napi::TypedArray>().ByteLength() < capture_->longest_record()) {
    throw Napi::TypeError::New(info.Env(), "drain(target): target must be a Uint8Array with room for the longest record");
  }
  Napi::Uint8Array target = info[0].As<Napi::Uint8Array>();
  const size_t bytes = capture_->drain({target.Data(), target.ByteLength()});
  return Napi::Number::New(info.Env(), static_cast<double>(bytes));
}

Napi::Value CaptureHandle::counts(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Napi::Array out = Napi::Array::New(env, capture_->taps());
  for (uint32_t tap = 0; tap < capture_->taps(); ++tap) {
    const Capture::Counts counts = capture_->counts(tap);
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("seen", static_cast<double>(counts.seen));
    entry.Set("captured", static_cast<double>(counts.captured));
    entry.Set("dropped", static_cast<double>(counts.dropped));
    out.Set(tap, entry);
  }
  return out;
}

}  // namespace weir
