#include "switching/shared_buffer.h"

#include <algorithm>

#include "base/native_error.h"

namespace weir {

void check(const BufferParameters& p) {
  constexpr const char* kWhose = "shared buffer";
  constexpr int64_t kMost = int64_t{1} << 40;  // bytes; so that sums over ports and priorities, and products with beta, fit
  const auto is_size = [](int64_t bytes) { return bytes >= 0 && bytes <= kMost; };
  require(is_size(p.total) && is_size(p.headroom) && is_size(p.lateness_headroom) && is_size(p.xon_offset), kWhose,
          "sizes must be between 0 and 2^40 bytes");
  require(is_size(p.fixed_threshold), kWhose, "the threshold must be between 0 and 2^40 bytes");
  require(p.priorities >= 1 && p.priorities <= kPriorities, kWhose, "priorities are 1 to 8");
  require(p.beta >= 0 && p.beta <= 1e6, kWhose, "beta must be between 0 and 10^6");
  require(p.lossy_alpha >= 0, kWhose, "lossy_alpha must not be negative");
}

SharedBuffer::SharedBuffer(const BufferParameters& parameters, int ports, uint8_t lossless, uint32_t packets)
    : ports_(ports), packets_(packets), usage_(static_cast<size_t>(ports) * kPriorities) {
  reconfigure(parameters, lossless);
}

void SharedBuffer::reconfigure(const BufferParameters& parameters, uint8_t lossless) {
  parameters_ = parameters;
  lossless_ = lossless;
  shared_size_ = lossless == 0 ? parameters.total : parameters.total - parameters.headroom * ports_ * parameters.priorities;
  const bool dynamic = parameters.threshold == BufferParameters::Threshold::dynamic;
  surely_free_ = dynamic ? parameters.beta / parameters.priorities * (1 - 0x1p-30) : 0;
  frame_share_ = dynamic ? parameters.beta / parameters.priorities : 1;
  // n frames are at most `share` times the others where n <= share (packets - n).
  const auto surely = [this](double share) {
    return static_cast<int64_t>(static_cast<double>(packets_) * (share / (1 + share)) * (1 - 0x1p-30)) - 1;
  };
  surely_fewer_ = surely(frame_share_);
  surely_fewer_lossy_ = surely(parameters.lossy_alpha);
  lossy_minimum_ = lossless != 0 && parameters.priorities == kPriorities ? parameters.headroom : 0;
}

int64_t SharedBuffer::pfc_threshold() const {
  if (parameters_.threshold == BufferParameters::Threshold::fixed) return parameters_.fixed_threshold;
  return static_cast<int64_t>(parameters_.beta * static_cast<double>(free_bytes()) / parameters_.priorities);
}

bool SharedBuffer::below_xon(int ingress, int priority) const {
  const Usage& in = at(ingress, priority);
  return in.headroom == 0 && in.ingress <= std::max<int64_t>(0, pfc_threshold() - parameters_.xon_offset) &&
         !above_frames(in.ingress_frames + in.ingress_frames / 4);
}

}  // namespace weir
