// Request packets that came too early, kept until those before them are here (selective repeat).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

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
    if (slot.trimmed) --trimmed_;
    slot = {psn, length, marked || (this->length(psn) != 0 && slot.marked)};
    std::memcpy(at(psn), bytes, there);
    return true;
  }
  // 0: not here.
  uint32_t length(uint32_t psn) const {
    const Slot& slot = slots_[psn % kMaxSelectiveWindow];
    return slot.psn == psn ? slot.length : 0;
  }
  // Tells of a packet that is here whether it, or a copy of it, met congestion.
  bool marked(uint32_t psn) const { return slots_[psn % kMaxSelectiveWindow].marked; }
  const uint8_t* bytes(uint32_t psn) const { return bytes_.get() + static_cast<size_t>(psn % kMaxSelectiveWindow) * stride_; }
  // False: it was not here.
  bool drop(uint32_t psn) {
    Slot& slot = slots_[psn % kMaxSelectiveWindow];
    if (slot.psn != psn) return false;
    if (slot.trimmed) --trimmed_;
    slot.trimmed = false;
    if (slot.length == 0) return false;
    --count_;
    slot.length = 0;
    return true;
  }
  // A switch has left the headers of a packet of [expected, expected + kMaxSelectiveWindow). False: it is here.
  bool trim(uint32_t psn) {
    Slot& slot = slots_[psn % kMaxSelectiveWindow];
    if (slot.length != 0) return false;
    if (!slot.trimmed) ++trimmed_;
    slot.psn = psn;
    slot.trimmed = true;
    return true;
  }
  // Whether there are some that bitmap_of_trimmed() has not told of.
  bool has_trimmed() const { return trimmed_ != 0; }
  // Bit i: packet expected + i is here. kMaxSelectiveWindow / 8 bytes, until it is called again.
  const uint8_t* bitmap(uint32_t expected) {
    return bitmap_by(expected, [](Slot& slot) { return slot.length != 0; });
  }
  // The same for packets that were trimmed since the last time.
  const uint8_t* bitmap_of_trimmed(uint32_t expected) {
    trimmed_ = 0;
    return bitmap_by(expected, [](Slot& slot) { return std::exchange(slot.trimmed, false); });
  }

 private:
  struct Slot {
    uint32_t psn = 0;
    uint32_t length = 0;
    bool marked = false;
    bool trimmed = false;
  };
  template <class Test>
  const uint8_t* bitmap_by(uint32_t expected, Test test) {
    bitmap_.fill(0);
    for (uint32_t i = 0; i < kMaxSelectiveWindow; ++i) {
      const uint32_t psn = psn_add(expected, i);
      Slot& slot = slots_[psn % kMaxSelectiveWindow];
      if (test(slot) && slot.psn == psn) bitmap_[i / 8] = static_cast<uint8_t>(bitmap_[i / 8] | 1u << (i % 8));
    }
    return bitmap_.data();
  }
  uint8_t* at(uint32_t psn) { return bytes_.get() + static_cast<size_t>(psn % kMaxSelectiveWindow) * stride_; }

  uint32_t stride_;
  uint32_t count_ = 0;
  uint32_t trimmed_ = 0;
  std::array<Slot, kMaxSelectiveWindow> slots_{};
  std::array<uint8_t, kMaxSelectiveWindow / 8> bitmap_{};
  std::unique_ptr<uint8_t[]> bytes_;  // only what is kept was ever written
};

}  // namespace weir
