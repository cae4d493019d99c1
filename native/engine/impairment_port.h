// Wraps a port and spoils what it receives as an impaired link does (link/impairment.h), or faults that come and go
// (link/faults.h). It is exact in virtual time: the same frames at the same times give the same result.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/counters.h"
#include "base/lazy_memory.h"
#include "base/ring.h"
#include "io/packet_port.h"
#include "link/faults.h"
#include "link/impairment.h"

namespace weir {

struct ImpairmentOptions {
  uint64_t seed = 0;
  uint64_t component = 0;       // the link's number, so that links differ
  uint32_t pool_frames = 4096;  // frames that can be held back or changed at a time: rate * delay / frame size
  uint32_t slot_bytes = 2048;   // the longest of them
};

#define WEIR_IMPAIRMENT_COUNTERS(X)                                                   \
  X(lost, "frames", fault, "Frames dropped on purpose")                               \
  X(duplicated, "frames", duplicate, "Frames received twice on purpose")              \
  X(corrupted, "frames", none, "Frames with one bit flipped on purpose")              \
  X(reordered, "frames", none, "Frames held back on purpose so that others overtake") \
  X(delayed, "frames", none, "Frames delayed on purpose")                             \
  X(overflow, "frames", fault, "Frames lost because the impairment's memory was full")

WEIR_DEFINE_COUNTERS(ImpairmentCounters, WEIR_IMPAIRMENT_COUNTERS);

// Frames that are held or changed are copied into memory of the impairment's own; all others are lent on as they are.
// A held frame is received when PortClock::now has reached its stamp, which is the original one plus what it was held.
// Before reopen() every frame must have been received and released, the held ones excepted.
// At every moment holds: frames in + duplicated = frames out + lost + overflow + held().
class ImpairmentPort final : public PortWrapper {
 public:
  // Throws NativeError INVALID_CONFIG for parameters that do not pass check().
  ImpairmentPort(std::unique_ptr<PacketPort> inner, const ImpairmentParameters& parameters, const ImpairmentOptions& options,
                 const PortClock& clock);

  // For faults alone: it is to come around a port that runs.
  explicit ImpairmentPort(const PortClock& clock);
  // `lent`: frames that the port has lent by now.
  void come_around(std::unique_ptr<PacketPort> inner, size_t lent) {
    inner_ = std::move(inner);
    before_ = lent;
  }

  size_t receive(std::span<RxFrame> frames) override;
  void release(size_t count) override;
  Time next_deadline() const override;
  PortLosses losses() override;
  PortState state() override;
  Time next_state_change() const override { return std::min(inner_->next_state_change(), faults_.next_change(clock_.now)); }

  Faults& faults() { return faults_; }
  const PortClock& clock() const { return clock_; }
  const ImpairmentCounters& counters() const { return counters_; }
  size_t held() const { return held_.size() + (fresh_count_ - fresh_next_); }

 private:
  static constexpr size_t kBatch = 64;
  static constexpr size_t kMaxLent = 4096;
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  struct Held {
    Time due;
    uint64_t sequence;  // equal times: in order of arrival
    uint32_t slot;
  };
  // A frame that the caller holds: which slot to free, and how many of the inner port's frames to release with it.
  struct Lent {
    uint32_t slot;
    uint32_t inner;
  };
  static bool later(const Held& a, const Held& b) { return a.due != b.due ? a.due > b.due : a.sequence > b.sequence; }

  // True if the frame is to be lent on as it is; `changed`: it cannot be.
  bool admit(const RxFrame& frame, bool changed);
  // The frames in a super-frame one by one. False: it is none that can be cut.
  bool admit_cut(const RxFrame& frame);
  // The slot of the copy, or kNoSlot.
  uint32_t hold(const RxFrame& frame, Time stamp, Time due);
  // What an impairment of the link makes of a frame, and then faults.
  Impairment::Fate decide(const RxFrame& frame, PacketMeta& meta);
  bool spoils() const { return impaired_ || faults_.any(); }
  void take_pauses();
  RxFrame lend_held();
  void consume_inner();

  const PortClock& clock_;
  Impairment impairment_;
  const bool impaired_;
  Faults faults_;
  PortLosses faulted_;  // those that faults have made
  size_t before_ = 0;   // frames that were lent before this port came

  std::array<RxFrame, kBatch> fresh_;  // frames from the inner port, not yet looked at
  size_t fresh_next_ = 0;
  size_t fresh_count_ = 0;

  const uint32_t slot_bytes_;
  LazyMemory bytes_;
  std::vector<uint8_t> cut_;
  std::vector<RxFrame> frames_;  // frame of each slot
  std::vector<uint32_t> free_slots_;
  std::vector<Held> held_;  // heap, earliest first
  uint64_t sequence_ = 0;
  Ring<Lent> lent_;
  ImpairmentCounters counters_;
};

}  // namespace weir
