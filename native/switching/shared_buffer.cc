#include "switching/shared_buffer.h"

#include <algorithm>

#include "base/native_error.h"

namespace weir {

SharedBuffer::SharedBuffer(const BufferParameters& parameters, int ports, uint8_t lossless, uint32_t packets)
    : ports_(ports), packets_(packets), usage_(static_cast<size_t>(ports) * kPriorities) {
  reconfigure(parameters, lossless);
}

void SharedBuffer::reconfigure(const BufferParameters& parameters, uint8_t lossless) { reconfigure(parameters, lossless, {}); }

void SharedBuffer::reconfigure(const BufferParameters& parameters, uint8_t lossless,
                               const std::vector<std::optional<PortBuffer>>& own, FixedQueue fixed) {
  parameters_ = parameters;
  fixed_ = fixed;
  lossless_ = lossless;
  const PortBuffer usual = {.headroom = parameters.headroom,
                            .beta = parameters.beta,
                            .fixed_threshold = parameters.fixed_threshold,
                            .xon_offset = parameters.xon_offset,
                            .lossy_alpha = parameters.lossy_alpha};
  common_ = limits_from(usual);
  limits_.clear();
  int64_t reserved = parameters.headroom * ports_;
  for (size_t port = 0; port < own.size(); ++port) {
    if (!own[port]) continue;
    limits_.resize(static_cast<size_t>(ports_), common_);
    limits_[port] = limits_from(*own[port]);
    reserved += own[port]->headroom - parameters.headroom;
  }
  shared_size_ = lossless == 0 ? parameters.total : parameters.total - reserved * parameters.priorities;
}

SharedBuffer::Limits SharedBuffer::limits_from(const PortBuffer& own) const {
  const bool dynamic = parameters_.threshold == BufferParameters::Threshold::dynamic;
  const double share = dynamic ? own.beta / parameters_.priorities : 1;
  // n frames are at most `share` times the others where n <= share (packets - n).
  const auto surely = [this](double part) {
    return static_cast<int64_t>(static_cast<double>(packets_) * (part / (1 + part)) * (1 - 0x1p-30)) - 1;
  };
  return {.surely_free = dynamic ? share * (1 - 0x1p-30) : 0,
          .beta = dynamic ? own.beta : 0,
          .threshold = own.fixed_threshold,
          .most_headroom = own.headroom + parameters_.lateness_headroom,
          .lossy_alpha = own.lossy_alpha,
          .lossy_minimum = lossless_ != 0 && parameters_.priorities == kPriorities ? own.headroom : 0,
          .frame_share = share,
          .surely_fewer = surely(share),
          .surely_fewer_lossy = surely(own.lossy_alpha),
          .xon_offset = own.xon_offset,
          .headroom = own.headroom};
}

int64_t SharedBuffer::pfc_threshold(const Limits& limits) const {
  if (parameters_.threshold == BufferParameters::Threshold::fixed) return limits.threshold;
  return static_cast<int64_t>(limits.beta * static_cast<double>(free_bytes()) / parameters_.priorities);
}

bool SharedBuffer::below_xon(int ingress, int priority) const {
  const Usage& in = at(ingress, priority);
  const Limits& limits = limits_of(ingress);
  return in.headroom == 0 && in.ingress <= std::max<int64_t>(0, pfc_threshold(limits) - limits.xon_offset) &&
         !above_frames(limits, in.ingress_frames + in.ingress_frames / 4);
}

}  // namespace weir
