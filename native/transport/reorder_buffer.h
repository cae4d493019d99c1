// Request packets that came too early, kept until those before them are here (selective repeat).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include "transport/psn.h"
#include "transport/queue_attributes.h"

namespace weir {

class ReorderBuffer {
 public:
  // `path_mtu`: 0 when packets carry no payload.
  explicit ReorderBuffer(uint32_t path_mtu)
      : stride_(kBthHeader + kMostExtensions + path_mtu + 4),
        bytes_(std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(stride_) * kMaxSelectiveWindow)) {}

  bool empty() const { return count_ == 0; }
  // Packets [expected + 1, expected + kMaxSelectiveWindow) may be kept; `length` from the BTH to the end of the pad, of which
  // the first `there` bytes exist; `marked`: it met congestion. False: it does not fit.
  bool keep(uint32_t psn, const uint8_t* bytes, uint32_t there, uint32_t length, bool marked) {
    if (there > stride_) return false;
    Slot& slot = slots_[psn % kMaxSelectiveWindow];
    if (slot.length == 0) ++count_;
    slot = {psn, length, marked || (this->length(psn) != 0 && slot.marked)};
    std::memcpy(at(psn), bytes, there);
    return true;
  }
  // 0: not here.
  uint32_t length(uint32_t psn) const {
    const Slot& slot = slots_[psn % kMaxSelectiveWindow];
    return slot.psn == psn ? slot.length : 0;
  }
  // Of one that is here: whether it, or a copy of it, met congestion.
  bool marked(uint32_t psn) const { return slots_[psn % kMaxSelectiveWindow].marked; }
  const uint8_t* bytes(uint32_t psn) const { return bytes_.get() + static_cast<size_t>(psn % kMaxSelectiveWindow) * stride_; }
  // False: it was not here.
  bool drop(uint32_t psn) {
    if (length(psn) == 0) return false;
    --count_;
    slots_[psn % kMaxSelectiveWindow].length = 0;
    return true;
  }
  // Bit i: packet expected + i is here. kMaxSelectiveWindow / 8 bytes, until it is called again.
  const uint8_t* bitmap(uint32_t expected) {
    bitmap_.fill(0);
    for (uint32_t i = 0; i < kMaxSelectiveWindow; ++i) {
      if (length(psn_add(expected, i)) != 0) bitmap_[i / 8] = static_cast<uint8_t>(bitmap_[i / 8] | 1u << (i % 8));
    }
    return bitmap_.data();
  }

 private:
  struct Slot {
    uint32_t psn = 0;
    uint32_t length = 0;
    bool marked = false;
  };
  uint8_t* at(uint32_t psn) { return bytes_.get() + static_cast<size_t>(psn % kMaxSelectiveWindow) * stride_; }

  uint32_t stride_;
  uint32_t count_ = 0;
  std::array<Slot, kMaxSelectiveWindow> slots_{};
  std::array<uint8_t, kMaxSelectiveWindow / 8> bitmap_{};
  std::unique_ptr<uint8_t[]> bytes_;  // only what is kept was ever written
};

}  // namespace weir
