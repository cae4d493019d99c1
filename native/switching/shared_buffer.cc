#include "switching/shared_buffer.h"

#include <algorithm>

#include "base/native_error.h"

namespace weir {

SharedBuffer::SharedBuffer(const BufferParameters& parameters, int ports, uint8_t lossless, uint32_t packets)
    : ports_(ports), packets_(packets), usage_(static_cast<size_t>(ports) * kPriorities) {
  reconfigure(parameters, lossless);
}

void SharedBuffer::reconfigure(const BufferParameters& parameters, uint8_t lossless,
                               const std::vector<std::optional<PortBuffer>>& own, FixedQueue fixed) {
  fixed_ = fixed;
  lossless_ = lossless;
  const PortBuffer usual = {.headroom = parameters.headroom,
                            .beta = parameters.beta,
                            .fixed_threshold = parameters.fixed_threshold,
                            .xon_offset = parameters.xon_offset,
                            .lossy_alpha = parameters.lossy_alpha};
  common_ = limits_from(parameters, usual, lossless, packets_);
  limits_.clear();
  int64_t reserved = parameters.headroom * ports_;
  for (size_t port = 0; port < own.size(); ++port) {
    if (!own[port]) continue;
    limits_.resize(static_cast<size_t>(ports_), common_);
    limits_[port] = limits_from(parameters, *own[port], lossless, packets_);
    reserved += own[port]->headroom - parameters.headroom;
  }
  shared_size_ = lossless == 0 ? parameters.total : parameters.total - reserved * parameters.priorities;
}

bool SharedBuffer::below_xon(int ingress, int priority) const {
  const Usage& in = at(ingress, priority);
  const BufferLimits& limits = limits_of(ingress);
  return in.headroom == 0 && in.ingress <= std::max<int64_t>(0, limits.pfc_threshold(free_bytes()) - limits.xon_offset) &&
         !above_frames(limits, in.ingress_frames + in.ingress_frames / 4);
}

}  // namespace weir
