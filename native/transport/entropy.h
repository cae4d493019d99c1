// Chooses the way of a queue pair's next packet, where its packets are sprayed: an entropy value (EV) for each,
// which the UDP source port carries (wire/roce_builder.h). Switches that hash it (ECMP) then send the packets of one queue pair
// by many ways, and need know nothing of it.
//
//   oblivious  all values in turn, from another one on in each round
//   reps       REPS, "recycled entropies packet spraying" (Bonato et al., "REPS: Recycled Entropy Packet Spraying for Adaptive
//              Load Balancing and Failure Mitigation", 2024). A value whose packet was acknowledged without a mark is kept, and
//              used once more, the oldest first; without any that is kept, one is drawn. So as many packets as ways have room for
//              keep to ways that are free, at the pace of their acknowledgements; values that were marked, or whose packets were
//              lost, are left.
//
// The simulator ultraethernet/uet-htsim (uec_mp.cpp, buffer_reps.h) gives what the paper leaves open: kKept; kExplored; which
// value is the oldest. After a timeout REPS freezes: it takes what it had kept, used or not, in a circle, for those values'
// packets came through, until new ones come or the time is over. Readings:
//
//   - It is frozen for the 10 ms of the simulator, in the time of a lab's slower clock. It then draws kExplored values, and has
//     kept none. Acknowledgements take
//     all values in turn.
//   - The value that was sent is remembered with the packet: acknowledgements need not repeat it. If a packet was sent twice,
//     nobody knows which one came, and neither value is kept.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/random.h"
#include "base/types.h"

namespace weir {

enum class Spraying : uint8_t { none, oblivious, reps };
constexpr auto words_of(Spraying) { return std::array{"none", "oblivious", "reps"}; }

inline constexpr uint16_t kMaxEntropies = 1 << 14;

class Entropy {
 public:
  static constexpr uint32_t kKept = 8;
  static constexpr uint32_t kExplored = 16;

  // `how`: not none. `values`: how many there are, 1..kMaxEntropies. `freeze`: how long it is frozen after a timeout, ns.
  Entropy(Spraying how, uint16_t values, Time freeze, Random random)
      : how_(how), values_(values), freeze_(freeze), random_(random) {}

  // Returns the value for the packet that is sent now; below values.
  uint16_t next(Time now) {
    if (how_ == Spraying::oblivious) return in_turn();
    if (frozen_until_ != kNever && now >= frozen_until_) {
      frozen_until_ = kNever;
      kept_ = fresh_ = 0;
      explores_ = kExplored;
    }
    if (explores_ > 0) return --explores_, draw();
    if (fresh_ > 0) return value_[(head_ + kKept - fresh_--) % kKept];
    if (frozen_until_ == kNever || kept_ == 0) return draw();
    turn_ = (turn_ + 1) % kept_;
    return value_[turn_];
  }
  // A packet of it was acknowledged, for the first time, and was not sent again.
  void acknowledged(uint16_t value, bool marked) {
    if (how_ != Spraying::reps || marked) return;
    value_[head_] = value;
    head_ = (head_ + 1) % kKept;
    kept_ = std::min(kept_ + 1, kKept);
    fresh_ = std::min(fresh_ + 1, kKept);
  }
  // No acknowledgement came in time.
  void timed_out(Time now) {
    if (how_ == Spraying::reps && frozen_until_ == kNever && explores_ == 0) frozen_until_ = now + freeze_;
  }

 private:
  uint16_t draw() { return static_cast<uint16_t>(random_.next() % values_); }
  uint16_t in_turn() {
    if (turn_ == 0) offset_ = draw();
    const uint32_t value = (turn_ + offset_) % values_;
    turn_ = (turn_ + 1) % values_;
    return static_cast<uint16_t>(value);
  }

  Spraying how_;
  uint16_t values_;
  uint16_t offset_ = 0;
  std::array<uint16_t, kKept> value_{};
  uint32_t head_ = 0;      // the next place of value_
  uint32_t kept_ = 0;      // places that hold one
  uint32_t fresh_ = 0;     // the newest so many have not been used again
  uint32_t turn_ = 0;      // place in the circle, or in the round
  uint32_t explores_ = 0;  // values that are drawn, whatever is kept
  Time freeze_;
  Time frozen_until_ = kNever;  // kNever: it is not
  Random random_;
};

}  // namespace weir
