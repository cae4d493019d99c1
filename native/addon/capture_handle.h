// A capture as JavaScript holds it, which is its reader: see src/native/types.ts.
#pragma once

#include <napi.h>

#include <memory>

#include "addon/wrap.h"
#include "io/capture.h"

namespace weir {

struct CaptureConfig {
  CaptureOptions options;
  uint32_t taps = 0;
};
void describe(auto& v, Of<CaptureConfig> auto& config) {
  v.type("CaptureConfig", "What is captured.");
  v("snap_length", config.options.snap_length, field::any("Of each frame to keep, at most 262,144.", "bytes"));
  v("ring_bytes", config.options.ring_bytes,
    field::any("Between the worker and the reader, a multiple of 8; what finds no room is dropped.", "bytes"));
  v("kinds", config.options.kinds, field::any("Mask of kCaptureKinds: frames that are of one of these."));
  v("taps", config.taps, field::any("How many places frames come from."));
}
void describe(auto& v, Of<Capture::Counts> auto& counts) {
  v.type("CaptureCounts", "What became of the frames of one tap.");
  v("seen", counts.seen, field::any("All that passed."));
  v("captured", counts.captured, field::any("Of those."));
  v("dropped", counts.dropped, field::any("Wanted, but the ring was full."));
}

class CaptureHandle : public Wrap<CaptureHandle> {
 public:
  static constexpr const char* kName = "Capture";
  static constexpr napi_type_tag kTag{0x5cf0a2d9134b4e86, 0x97b1e3c64d20f85a};

  static Napi::Function define(Napi::Env env);
  // Capture({snap_length, ring_bytes, kinds, taps}).
  explicit CaptureHandle(const Napi::CallbackInfo& info);

  const std::shared_ptr<Capture>& capture() const { return capture_; }
  // Gives it to the one worker that records to it. Throws a JavaScript error if another has taken it.
  const std::shared_ptr<Capture>& give();

 private:
  size_t drain(std::span<uint8_t> target);
  std::vector<Capture::Counts> counts();

  std::shared_ptr<Capture> capture_;
  bool given_ = false;
};

}  // namespace weir
