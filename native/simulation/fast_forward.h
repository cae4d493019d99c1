// Fast-forward: while a network of long flows is in a steady state, time goes on outside and nothing happens inside.
//
// Devices keep a time of their own, inside, and nothing of their state is moved. Time outside is that and all that was skipped
// before; what leaves a simulation, and what it is told, is in time outside. The network is watched in windows, for longer and
// longer until the parts of the later half of what was watched are alike. Then what counters and distributions have grown by in
// that half is repeated for a stretch, many times as long, and some time behind it is simulated and compared with what was
// repeated: the judge. While it agrees it is one with what is observed, and the next time more is skipped; where it does not, the
// network is watched anew.
//
// It decides by what has been counted alone, at times that depend on the configuration alone: it is the same for any number of
// threads, and however a run is cut into calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/describe.h"
#include "base/histogram.h"
#include "base/types.h"
#include "endpoint/network_traffic.h"
#include "simulation/config.h"
#include "simulation/counter_tables.h"
#include "simulation/fabric.h"
#include "simulation/steady_state.h"

namespace weir {

// A stretch that was skipped, in time outside, and what the judge found behind it.
struct SkippedStretch {
  Time from = 0;
  Time to = 0;
  Time observed = 0;
  Time judged = 0;
  bool agrees = false;
  Differences differences;
};
void describe(auto& v, Of<SkippedStretch> auto& stretch) {
  v.type("SkippedStretch", "A stretch of time that was skipped, and how much the time behind it differs from what was foretold.");
  v("from", stretch.from, field::any("When it began.", "ns"));
  v("to", stretch.to, field::any("When it ended.", "ns"));
  v("observed", stretch.observed, field::any("How long that lasted which it repeats.", "ns"));
  v("judged", stretch.judged, field::any("How long that lasted which was compared; 0: nothing, the run ended before.", "ns"));
  v("agrees", stretch.agrees, field::any("All differences are within the bound."));
  v("goodput", stretch.differences.goodput, field::any("Of all flows together; as the others a part of what was foretold."));
  v("shares", stretch.differences.shares, field::any("Of flows: sum of what each differs by, over the sum."));
  v("marks", stretch.differences.marks, field::any("Packets marked CE."));
  v("queues", stretch.differences.queues, field::any("Sum of the mean lengths of queues."));
}

struct FastForwardReport {
  Time window = 0;
  double share = 0;
  std::string reason;
  std::vector<SkippedStretch> stretches;
};
void describe(auto& v, Of<FastForwardReport> auto& report) {
  v.type("FastForwardReport", "What was skipped.");
  v("window", report.window, field::any("In whose multiples the network is watched.", "ns"));
  v("share", report.share, field::any("Time that has to be simulated to judge what is skipped, at least, as a part of that."));
  v("reason", report.reason, field::any("Why nothing was skipped; empty: something was."));
  v("stretches", report.stretches, field::any("In their order."));
}

class FastForward {
 public:
  // `config` has FastForwardParameters; it, the fabric and the layout must outlive this.
  FastForward(const SimulationConfig& config, Fabric& fabric, const FlowLayout& layout);

  // Time outside.
  Time now() const { return fabric_.now() + skipped_ + position_; }
  // The time outside of something that has happened.
  Time outside(Time inside) const;
  // The time inside of something to come.
  Time inside(Time outside) const { return outside - skipped_; }
  // Time stands inside.
  bool skipping() const { return length_ > 0; }
  // Goes on with that up to a time outside, or to its end.
  void skip(Time until);
  // When look() must be called, in time inside: everything up to then has happened.
  Time next_look() const { return next_look_; }
  void look();
  // The distributions of queues are about to start afresh.
  void distributions_restart();

  // Adds what was skipped so far to what devices have counted.
  void add_to(CounterTables& tables) const;
  // The same to a row of a table.
  template <class Counters>
  void add_to(Counters& counters, CounterTable CounterTables::*table, size_t row) const {
    const size_t first = row * Counters::kCount;
    for (size_t i = 0; i < Counters::kCount; ++i) {
      counters.words()[i] += (skipped_counts_.*table).words[first + i];
      if (skipping())
        counters.words()[i] +=
            portion((growth_.*table).words[first + i], static_cast<uint64_t>(position_), static_cast<uint64_t>(length_));
    }
  }
  FastForwardReport report() const;

 private:
  enum class Phase : uint8_t { idle, settling, judging, waiting };
  using Distributions = std::map<uint64_t, Histogram>;
  // All that a stretch is a difference of.
  struct Snapshot {
    Measures measures;
    CounterTables counters;
    Distributions distributions;
    std::vector<uint32_t> under_way;
  };

  double share() const;
  Time end() const { return parameters_.due.back(); }
  Measures measured();
  Snapshot snapshot();
  void settle();
  bool judge();
  Time drift() const;
  void jump();
  bool begin(Time length);
  template <class Visit>
  void each_distribution(Visit visit);

  const SimulationConfig& config_;
  const FastForwardParameters& parameters_;
  Fabric& fabric_;
  const FlowLayout& layout_;
  std::string refusal_;  // why nothing may be skipped
  Time window_;
  Time next_look_ = kNever;  // inside
  size_t due_ = 0;           // what is due next

  Phase phase_ = Phase::idle;
  uint64_t windows_ = 0;         // windows since the phase began
  uint64_t half_ = 0;            // of those, when what is observed begins
  Time block_ = 0;               // length of a stretch that is compared
  double missed_ = 0;            // how much of a drift was skipped, as a part of the bound
  uint64_t times_ = 0;           // how many times what was observed may be repeated at once
  Snapshot base_;                // when what is observed began
  std::vector<Measures> parts_;  // between the parts of what is observed
  Measures ended_;               // judging: what was observed ended
  Measures resumed_;             // judging: the same when time inside goes on

  Time skipped_ = 0;              // by the stretches that are over
  CounterTables skipped_counts_;  // what they came to
  struct Jump {
    Time inside;
    Time skipped;
  };
  std::vector<Jump> jumps_;  // when time inside stood, and what was skipped by then
  // The stretch under way.
  Time length_ = 0;       // 0: there is none
  Time position_ = 0;     // how much of it is over
  CounterTables growth_;  // what it comes to
  std::vector<SkippedStretch> stretches_;
};

}  // namespace weir
