#include "switching/buffer_limits.h"

namespace weir {

int64_t BufferLimits::pfc_threshold(int64_t free_bytes) const {
  if (!dynamic) return threshold;
  return static_cast<int64_t>(beta * static_cast<double>(free_bytes) / priorities);
}

BufferLimits limits_from(const BufferParameters& parameters, const PortBuffer& own, uint8_t lossless, int64_t packets) {
  const bool dynamic = parameters.threshold == BufferParameters::Threshold::dynamic;
  const double share = dynamic ? own.beta / parameters.priorities : 1;
  // n frames are at most `share` times the others where n <= share (packets - n).
  const auto surely = [packets](double part) {
    return static_cast<int64_t>(static_cast<double>(packets) * (part / (1 + part)) * (1 - 0x1p-30)) - 1;
  };
  return {.dynamic = dynamic,
          .priorities = parameters.priorities,
          .surely_free = dynamic ? share * (1 - 0x1p-30) : 0,
          .beta = dynamic ? own.beta : 0,
          .threshold = own.fixed_threshold,
          .most_headroom = own.headroom + parameters.lateness_headroom,
          .lossy_alpha = own.lossy_alpha,
          .lossy_minimum = lossless != 0 && parameters.priorities == kPriorities ? own.headroom : 0,
          .frame_share = share,
          .surely_fewer = surely(share),
          .surely_fewer_lossy = surely(own.lossy_alpha),
          .xon_offset = own.xon_offset,
          .headroom = own.headroom};
}

}  // namespace weir
