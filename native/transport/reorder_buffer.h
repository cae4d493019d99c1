// Request packets that came too early, kept until those before them are here (selective repeat).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "base/lazy_memory.h"
#include "transport/psn.h"
#include "transport/queue_attributes.h"

namespace weir {

class ReorderBuffer {
 public:
  explicit ReorderBuffer(uint32_t path_mtu)
      : stride_(kBthHeader + kAtomicHeader + path_mtu + 4), bytes_(static_cast<size_t>(stride_) * kMaxWindow, false) {}

  bool empty() const { return count_ == 0; }
  // Packets [expected + 1, expected + kMaxWindow) may be kept; `bytes` from the BTH to the end of the pad. False: it does not
  // fit.
  bool keep(uint32_t psn, const uint8_t* bytes, uint32_t length) {
    if (length > stride_) return false;
    Slot& slot = slots_[psn % kMaxWindow];
    if (slot.length == 0) ++count_;
    slot = {psn, length};
    std::memcpy(at(psn), bytes, length);
    return true;
  }
  // 0: not here.
  uint32_t length(uint32_t psn) const {
    const Slot& slot = slots_[psn % kMaxWindow];
    return slot.psn == psn ? slot.length : 0;
  }
  const uint8_t* bytes(uint32_t psn) const { return bytes_.data() + static_cast<size_t>(psn % kMaxWindow) * stride_; }
  void drop(uint32_t psn) {
    if (length(psn) == 0) return;
    --count_;
    slots_[psn % kMaxWindow].length = 0;
  }
  // Bit i: packet expected + i is here.
  void bitmap(uint32_t expected, uint8_t (&out)[kMaxWindow / 8]) const {
    std::memset(out, 0, sizeof out);
    for (uint32_t i = 0; i < kMaxWindow; ++i) {
      if (length(psn_add(expected, i)) != 0) out[i / 8] = static_cast<uint8_t>(out[i / 8] | 1u << (i % 8));
    }
  }

 private:
  struct Slot {
    uint32_t psn = 0;
    uint32_t length = 0;
  };
  uint8_t* at(uint32_t psn) { return bytes_.data() + static_cast<size_t>(psn % kMaxWindow) * stride_; }

  uint32_t stride_;
  uint32_t count_ = 0;
  std::array<Slot, kMaxWindow> slots_{};
  LazyMemory bytes_;
};

}  // namespace weir
