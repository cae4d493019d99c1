// The harm that a bad link does to frames: loss, duplication, corruption, reordering, delay. Seeded: the same frames at the same
// times have the same fate. On the wire ImpairmentPort (engine/impairment_port.h) carries it out, in a simulation the fabric.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/describe.h"
#include "base/random.h"
#include "base/types.h"

namespace weir {

struct ImpairmentParameters {
  double loss = 0;
  double duplicate = 0;
  double corrupt = 0;
  double reorder = 0;
  Time delay = 0;
  Time jitter = 0;
  Time reorder_delay = 0;
};
void describe(auto& v, Of<ImpairmentParameters> auto& p) {
  constexpr double kMaxHold = 3600.0 * kSecond;
  v.type("NativeImpairmentParameters", "Frames impaired on purpose: with probabilities independent of each other.");
  v("loss", p.loss, field::fraction("Of frames, as the next three."));
  v("duplicate", p.duplicate, field::fraction("An unspoilt copy follows the frame directly."));
  v("corrupt", p.corrupt, field::fraction("One bit behind the Ethernet header is flipped."));
  v("reorder", p.reorder, field::fraction("The frame is held back by reorder_delay, and so overtaken."));
  v("delay", p.delay, field::optional(field::within(0, kMaxHold, "Of every frame.", "ns")));
  v("jitter", p.jitter,
    field::within(0, kMaxHold, "Uniform in 0..jitter, added to `delay`; no frame overtakes another by it.", "ns"));
  v("reorder_delay", p.reorder_delay, field::within(0, kMaxHold, "More than 0 if `reorder` is.", "ns"));
  v.rule(p.reorder == 0 || p.reorder_delay > 0, "reorder has no effect without reorder_delay");
}

// Draws the faults of one direction of a link.
class Impairment {
 public:
  // Parameters that pass check(). `component`: which link, so that links differ. `purpose`: of the first of its random streams,
  // which are kStreams in a row.
  static constexpr uint64_t kStreams = 6;
  Impairment(const ImpairmentParameters& parameters, uint64_t seed, uint64_t component, uint64_t purpose)
      : parameters_(parameters),
        loss_{parameters.loss, Random(seed, component, purpose)},
        duplicate_{parameters.duplicate, Random(seed, component, purpose + 1)},
        corrupt_{parameters.corrupt, Random(seed, component, purpose + 2)},
        corrupt_bit_(seed, component, purpose + 3),
        reorder_{parameters.reorder, Random(seed, component, purpose + 4)},
        jitter_(seed, component, purpose + 5) {}

  struct Fate {
    bool lost = false;
    bool duplicated = false;  // a copy arrives as the frame does
    bool corrupted = false;
    bool reordered = false;
    // By a fault (link/faults.h):
    bool marked = false;
    bool refused = false;  // it becomes a NAK with this syndrome
    uint8_t syndrome = 0;
    bool trimmed = false;  // to so many bytes, with this DSCP
    uint16_t size = 0;
    uint8_t dscp = 0;
    uint8_t failure = 0;  // PacketMeta::failure
    Rate slowed = 0;      // Packet::slowed
    uint64_t bit = 0;     // corrupted: a draw of the bit to flip
    Time at = 0;          // when it arrives
  };
  // Decides the fate of a frame that would arrive at `at`. Every frame has all draws, so no decision shifts another.
  Fate decide(Time at) {
    Fate fate;
    fate.lost = loss_.hit();
    fate.duplicated = duplicate_.hit();
    fate.corrupted = corrupt_.hit();
    fate.reordered = reorder_.hit();
    if (fate.corrupted) fate.bit = corrupt_bit_.next();
    Time jitter = 0;
    if (parameters_.jitter > 0) jitter = static_cast<Time>(jitter_.uniform() * static_cast<double>(parameters_.jitter + 1));
    fate.at = at;
    if (fate.lost) return fate;
    if (delays()) fate.at = last_ = std::max(last_, at + parameters_.delay + jitter);
    if (fate.reordered) fate.at += parameters_.reorder_delay;
    return fate;
  }
  // Whether frames that are not reordered arrive later than they would.
  bool delays() const { return parameters_.delay > 0 || parameters_.jitter > 0; }

 private:
  // One probability with a stream of its own.
  struct Chance {
    double probability;
    Random random;
    bool hit() { return probability > 0 && random.uniform() < probability; }
  };

  ImpairmentParameters parameters_;
  Chance loss_;
  Chance duplicate_;
  Chance corrupt_;
  Random corrupt_bit_;
  Chance reorder_;
  Random jitter_;
  Time last_ = INT64_MIN;
};

}  // namespace weir
