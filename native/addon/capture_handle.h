// A capture as JavaScript holds it, which is its reader: see src/native/types.ts.
#pragma once

#include <napi.h>

#include <memory>

#include "addon/unwrap.h"
#include "io/capture.h"

namespace weir {

class CaptureHandle : public Napi::ObjectWrap<CaptureHandle> {
 public:
  static constexpr const char* kName = "Capture";
  static constexpr napi_type_tag kTag{0x5cf0a2d9134b4e86, 0x97b1e3c64d20f85a};

  static Napi::Function define(Napi::Env env);
  // Capture({snap_length, ring_bytes, kinds, taps}).
  explicit CaptureHandle(const Napi::CallbackInfo& info);

  // For the one worker that records to it. Throws a JavaScript error if `value` is none, or another has taken it.
  static std::shared_ptr<Capture> give(const Napi::Value& value);
  static std::shared_ptr<Capture> of(const Napi::Value& value) { return unwrap<CaptureHandle>(value).capture_; }

 private:
  Napi::Value drain(const Napi::CallbackInfo& info);
  Napi::Value counts(const Napi::CallbackInfo& info);

  std::shared_ptr<Capture> capture_;
  bool given_ = false;
};

}  // namespace weir
