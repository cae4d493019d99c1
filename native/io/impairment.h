// Wraps a port and spoils what it receives: loss, duplication, corruption, reordering, delay. Seeded and, in virtual
// time, exact: the same frames at the same times give the same result.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/counters.h"
#include "base/lazy_memory.h"
#include "base/random.h"
#include "io/packet_port.h"

namespace weir {

struct ImpairmentParameters {
  double loss = 0;         // probabilities 0..1, independent of each other, per received frame
  double duplicate = 0;    // an unspoilt copy follows the frame directly
  double corrupt = 0;      // one bit behind the Ethernet header is flipped
  double reorder = 0;      // the frame is held back by reorder_delay and so overtaken
  Time delay = 0;          // ns, every frame
  Time jitter = 0;         // ns, uniform in 0..jitter, added to `delay`; frames do not overtake each other by it
  Time reorder_delay = 0;  // ns; more than 0 if `reorder` is
};

struct ImpairmentOptions {
  uint64_t seed = 0;
  uint64_t component = 0;       // which link, so that links differ
  uint32_t pool_frames = 4096;  // frames that can be held back or changed at a time: rate * delay / frame size
  uint32_t slot_bytes = 2048;   // the longest of them
};

#define WEIR_IMPAIRMENT_COUNTERS(X)                                             \
  X(lost, "frames", "Frames dropped on purpose")                                \
  X(duplicated, "frames", "Frames received twice on purpose")                   \
  X(corrupted, "frames", "Frames with one bit flipped on purpose")              \
  X(reordered, "frames", "Frames held back on purpose so that others overtake") \
  X(delayed, "frames", "Frames delayed on purpose")                             \
  X(overflow, "frames", "Frames lost because the impairment's memory was full")

WEIR_DEFINE_COUNTERS(ImpairmentCounters, WEIR_IMPAIRMENT_COUNTERS);

// Frames that are held or changed are copied into memory of the impairment's own; all others are lent on as they are.
// A held frame is received when PortClock::now has reached its stamp, which is the original one plus what it was held.
// Before reopen() every frame must have been received and released, the held ones excepted.
// At every moment: frames in + duplicated = frames out + lost + overflow + held().
class ImpairmentPort final : public PortWrapper {
 public:
  // Throws NativeError INVALID_CONFIG for a probability outside 0..1, a time outside 0..1 hour, or `reorder` without
  // `reorder_delay`.
  ImpairmentPort(std::unique_ptr<PacketPort> inner, const ImpairmentParameters& parameters, const ImpairmentOptions& options,
                 const PortClock& clock);

  size_t receive(std::span<RxFrame> frames) override;
  void release(size_t count) override;
  Time next_deadline() const override;

  const ImpairmentCounters& counters() const { return counters_; }
  size_t held() const { return held_.size() + (fresh_count_ - fresh_next_); }

 private:
  static constexpr size_t kBatch = 64;
  static constexpr size_t kMaxLent = 4096;
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  // One probability with a stream of its own.
  struct Chance {
    double probability;
    Random random;
    bool hit() { return probability > 0 && random.uniform() < probability; }
  };
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

  // True if the frame is to be lent on as it is.
  bool admit(const RxFrame& frame);
  // The slot of the copy, or kNoSlot.
  uint32_t hold(const RxFrame& frame, Time stamp, Time due);
  void flip(uint32_t slot, uint64_t draw);
  RxFrame lend_held();
  void lend(Lent lent);
  void consume_inner();

  const ImpairmentParameters parameters_;
  const PortClock& clock_;
  Chance loss_;
  Chance duplicate_;
  Chance corrupt_;
  Chance reorder_;
  Random corrupt_bit_;
  Random jitter_;

  std::array<RxFrame, kBatch> fresh_;  // from the inner port, not yet looked at
  size_t fresh_next_ = 0;
  size_t fresh_count_ = 0;

  const uint32_t slot_bytes_;
  LazyMemory bytes_;
  std::vector<RxFrame> frames_;  // of each slot
  std::vector<uint32_t> free_slots_;
  std::vector<Held> held_;  // heap, earliest first
  uint64_t sequence_ = 0;
  Time last_due_ = INT64_MIN;
  std::vector<Lent> lent_;  // circular
  size_t lent_first_ = 0;
  size_t lent_count_ = 0;
  ImpairmentCounters counters_;
};

}  // namespace weir
