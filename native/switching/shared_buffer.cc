#include "switching/shared_buffer.h"

#include <algorithm>

namespace weir {

SharedBuffer::SharedBuffer(const BufferParameters& parameters, int ports, uint8_t lossless)
    : ports_(ports), usage_(static_cast<size_t>(ports) * kPriorities) {
  reconfigure(parameters, lossless);
}

void SharedBuffer::reconfigure(const BufferParameters& parameters, uint8_t lossless) {
  parameters_ = parameters;
  lossless_ = lossless;
  shared_size_ = lossless == 0 ? parameters.total : parameters.total - parameters.headroom * ports_ * parameters.priorities;
  lossy_minimum_ = lossless != 0 && parameters.priorities == kPriorities ? parameters.headroom : 0;
}

int64_t SharedBuffer::pfc_threshold() const {
  if (parameters_.threshold == BufferParameters::Threshold::fixed) return parameters_.fixed_threshold;
  const int64_t free = std::max<int64_t>(0, shared_size_ - occupied_);
  return static_cast<int64_t>(parameters_.beta * static_cast<double>(free) / parameters_.priorities);
}

bool SharedBuffer::below_xon(int ingress, int priority) const {
  return headroom_bytes(ingress, priority) == 0 &&
         ingress_bytes(ingress, priority) <= std::max<int64_t>(0, pfc_threshold() - parameters_.xon_offset);
}

Admission SharedBuffer::admit(int ingress, int egress, int priority, uint32_t length) {
  Usage& in = at(ingress, priority);
  Usage& out = at(egress, priority);
  const int64_t bytes = length;
  const bool room = occupied_ - in_headroom_ + bytes <= shared_size_;
  if ((lossless_ >> priority & 1) != 0) {
    if (!room || in.ingress + bytes > pfc_threshold()) {
      if (in.headroom + bytes > parameters_.headroom + parameters_.lateness_headroom) return Admission::headroom_full;
      in.headroom += bytes;
      in_headroom_ += bytes;
    }
  } else if (out.egress + bytes > lossy_minimum_) {
    const int64_t free = std::max<int64_t>(0, shared_size_ - occupied_);
    if (static_cast<double>(out.egress + bytes) > parameters_.lossy_alpha * static_cast<double>(free)) {
      return Admission::lossy_threshold;
    }
    if (!room) return Admission::buffer_full;
  }
  in.ingress += bytes;
  out.egress += bytes;
  occupied_ += bytes;
  return Admission::admitted;
}

void SharedBuffer::release(int ingress, int egress, int priority, uint32_t length) {
  Usage& in = at(ingress, priority);
  const int64_t bytes = length;
  const int64_t from_headroom = std::min(in.headroom, bytes);
  in.headroom -= from_headroom;
  in_headroom_ -= from_headroom;
  in.ingress -= bytes;
  at(egress, priority).egress -= bytes;
  occupied_ -= bytes;
}

}  // namespace weir
